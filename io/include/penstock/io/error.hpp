#pragma once

#include <penstock/error.hpp>

#include <cstdint>
#include <string>

namespace penstock::io {

/// Rows of a field or dataset: [first, first + count).
struct row_range {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// Rows of a dataset that are lost together: `count` of them, each `step` after the one before.
struct lost_rows {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t step = 1;
};

/// Where in the world of files something went wrong. Empty members are unknown or do not apply.
struct error_context {
  std::string file{};
  std::string dataset{};
  row_range rows{};
  std::string hdf5{};  ///< libhdf5's own messages, innermost last, one line each
  int system = 0;      ///< errno, or 0
  /// The bytes that are stored are at fault: they do not decode, or cannot be had from a disk that gives EIO or a file
  /// that ends. False for all that may go better the next time, or elsewhere.
  bool damaged = false;
  /// Where `damaged`, and it is a chunk that goes through filters, of the dataset or of a source that it shows: the
  /// rows of the dataset each of whose reads is this error again, asked for or not; of a virtual dataset, those of them
  /// that are known (where libhdf5 reads it, only such as were asked for). Otherwise none.
  lost_rows lost{};
};

/// A file could not be opened, understood or read. what() is one sentence: what, where, what would help.
class error : public penstock::error {
 public:
  /// `sentence` says what is wrong and what helps; file, dataset and rows of `context` are put before it.
  explicit error(const std::string& sentence, error_context context = {});
  const error_context& context() const noexcept { return context_; }

 private:
  error_context context_;
};

}  // namespace penstock::io
