#pragma once

#include <penstock/io/error.hpp>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <stdexcept>
#include <string>

namespace penstock::io {

/// The shortest range that holds both.
inline row_range both(row_range a, row_range b) noexcept {
  const auto first = std::min(a.first, b.first);
  return {first, std::max(a.first + a.count, b.first + b.count) - first};
}

/// What went wrong beneath the public classes. They know file, dataset and rows, and throw io::error.
struct failure : std::runtime_error {
  explicit failure(const std::string& sentence, int system_code = 0, std::string messages = {})
      : std::runtime_error(sentence), system(system_code), hdf5(std::move(messages)) {}

  int system = 0;
  std::string hdf5;
  bool damaged = false;           ///< the stored bytes are at fault
  std::optional<row_range> rows;  ///< of the dataset, where narrower than what was asked for
  lost_rows lost{};               ///< error_context::lost
};

/// Damage of what is stored: rows that are left out where a user allows it. All else is never taken for it.
struct damage : failure {
  explicit damage(const std::string& sentence, int system_code = 0, std::string messages = {})
      : failure(sentence, system_code, std::move(messages)) {
    damaged = true;
  }
};

/// What libhdf5 must not try to read either.
struct unreadable : failure {
  using failure::failure;
};

/// Thrown by decoders on a chunk that libhdf5 can read and they cannot: it is then read through libhdf5.
struct not_decodable : std::runtime_error {
  explicit not_decodable(const char* why, bool may_be_intact = false)
      : std::runtime_error(why), intact(may_be_intact) {}

  bool intact;  ///< what is stored may be right, and the decoder too old or too small for it
};

/// `f` with its failures (and exhausted memory) turned into io::error.
template <class F>
decltype(auto) with_context(const error_context& context, F&& f) {
  try {
    return f();
  } catch (const failure& e) {
    error_context full = context;
    if (e.rows) full.rows = *e.rows;
    full.system = e.system;
    full.hdf5 = e.hdf5;
    full.damaged = e.damaged;
    full.lost = e.lost;
    throw error(e.what(), std::move(full));
  } catch (const std::bad_alloc&) {
    error_context full = context;
    full.system = ENOMEM;
    throw error("there is not enough host memory for it", std::move(full));
  }
}

}  // namespace penstock::io
