#pragma once

#include <penstock/io/error.hpp>

#include <cerrno>
#include <optional>
#include <stdexcept>
#include <string>

namespace penstock::io {

/// What went wrong beneath the public classes. They know file, dataset and rows, and throw io::error.
struct failure : std::runtime_error {
  explicit failure(const std::string& sentence, int system_code = 0, std::string messages = {})
      : std::runtime_error(sentence), system(system_code), hdf5(std::move(messages)) {}

  int system = 0;
  std::string hdf5;
  std::optional<row_range> rows;  ///< of the dataset, where narrower than what was asked for
};

/// Thrown by decoders on a chunk that libhdf5 can read and they cannot: it is then read through libhdf5.
struct not_decodable : std::runtime_error {
  using std::runtime_error::runtime_error;
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
    throw error(e.what(), std::move(full));
  } catch (const std::bad_alloc&) {
    error_context full = context;
    full.system = ENOMEM;
    throw error("there is not enough host memory for it", std::move(full));
  }
}

}  // namespace penstock::io
