#pragma once

#include <penstock/handle.hpp>

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace examples {

template <herr_t (*Close)(hid_t)>
struct hdf5_traits {
  using native_type = hid_t;
  static native_type empty() noexcept { return H5I_INVALID_HID; }
  static void release(native_type id) noexcept { Close(id); }
};

/// A dataset read the plain way: libhdf5's own calls, on the caller's thread, with a chunk cache that holds one row of
/// chunks.
class plain_reader {
 public:
  plain_reader(const std::string& file, const std::string& dataset);

  std::uint64_t rows() const noexcept { return shape_[0]; }
  std::size_t row_bytes() const noexcept { return row_bytes_; }
  /// Reads the rows [first, first + count) to `out`.
  void read(std::uint64_t first, std::uint64_t count, std::byte* out);

 private:
  penstock::handle<hdf5_traits<H5Fclose>> file_;
  penstock::handle<hdf5_traits<H5Dclose>> dataset_;
  penstock::handle<hdf5_traits<H5Tclose>> type_;
  penstock::handle<hdf5_traits<H5Sclose>> space_;
  std::vector<hsize_t> shape_;
  std::size_t row_bytes_ = 0;
};

}  // namespace examples
