#pragma once

#include "plain_type.hpp"

#include <penstock/io/location.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace examples {

/// Datasets read the plain way, one after another: libhdf5's own calls, on the caller's thread, with a chunk cache that
/// holds one row of chunks. One file is open at a time.
class plain_reader {
 public:
  /// Looks at every dataset. Throws std::runtime_error where one cannot be read this way, or where its rows are not of
  /// `row_bytes`.
  plain_reader(const std::vector<penstock::io::location>& datasets, std::size_t row_bytes);

  std::uint64_t rows() const noexcept { return rows_; }
  std::size_t row_bytes() const noexcept { return row_bytes_; }
  /// Reads the rows [first, first + count) to `out`.
  void read(std::uint64_t first, std::uint64_t count, std::byte* out);

 private:
  struct part {
    penstock::io::location where;
    std::uint64_t first_row = 0;
    std::uint64_t rows = 0;
  };

  void open(const penstock::io::location& where);
  void read_open(const part& from, std::uint64_t first, std::uint64_t count, std::byte* out);

  std::vector<part> parts_;
  std::uint64_t rows_ = 0;
  std::size_t row_bytes_ = 0;

  std::size_t open_ = 0;  ///< the part that is open
  hdf5_handle<H5Fclose> file_;
  hdf5_handle<H5Dclose> dataset_;
  hdf5_handle<H5Tclose> type_;
  hdf5_handle<H5Sclose> space_;
  std::vector<hsize_t> shape_;
};

}  // namespace examples
