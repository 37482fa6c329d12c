#include "plain_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>

namespace examples {
namespace {

namespace io = penstock::io;
using property_list = hdf5_handle<H5Pclose>;

[[noreturn]] void refuse(const io::location& where, const std::string& why) {
  throw std::runtime_error(fmt::format("{}:{}: the baseline {}", where.file.string(), where.dataset, why));
}

/// Bytes of the chunks that lie side by side, over all axes but that of the rows; 0 unless chunked.
std::size_t bytes_of_chunk_row(hid_t dataset, const std::vector<hsize_t>& shape, std::size_t element_bytes) {
  const property_list layout(H5Dget_create_plist(dataset));
  if (H5Pget_layout(layout.native()) != H5D_CHUNKED) return 0;
  std::vector<hsize_t> chunk(shape.size());
  H5Pget_chunk(layout.native(), static_cast<int>(chunk.size()), chunk.data());
  std::size_t bytes = element_bytes * chunk[0];
  for (std::size_t axis = 1; axis < shape.size(); ++axis)
    bytes *= (shape[axis] + chunk[axis] - 1) / chunk[axis] * chunk[axis];
  return bytes;
}

}  // namespace

plain_reader::plain_reader(const std::vector<io::location>& datasets, std::size_t row_bytes) : row_bytes_(row_bytes) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  for (const io::location& where : datasets) {
    open(where);
    const std::size_t bytes =
        std::accumulate(shape_.begin() + 1, shape_.end(), H5Tget_size(type_.native()), std::multiplies<std::size_t>{});
    if (bytes != row_bytes)
      refuse(where, fmt::format("would read rows of {} bytes, and Penstock streams rows of {}; measure without "
                                "--baseline",
                                bytes, row_bytes));
    open_ = parts_.size();
    parts_.push_back({where, rows_, shape_[0]});
    rows_ += shape_[0];
  }
}

void plain_reader::open(const io::location& where) {
  dataset_.reset();
  const property_list files(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_file_locking(files.native(), false, true);  // files that are only read need no lock, and may lie where none is
  file_.reset(H5Fopen(where.file.c_str(), H5F_ACC_RDONLY, files.native()));
  dataset_.reset(H5Dopen2(file_.native(), where.dataset.c_str(), H5P_DEFAULT));
  if (!dataset_) refuse(where, "opens whole datasets only, and there is none of this name; measure without --baseline");
  space_.reset(H5Dget_space(dataset_.native()));
  const hdf5_handle<H5Tclose> stored(H5Dget_type(dataset_.native()));
  type_ = plain_type(stored.native());
  if (!type_ || H5Tis_variable_str(stored.native()) > 0)
    refuse(where, "does not read values of this type; measure without --baseline");
  shape_.assign(static_cast<std::size_t>(std::max(0, H5Sget_simple_extent_ndims(space_.native()))), 0);
  if (shape_.empty()) refuse(where, "reads rows, and this is a single value; measure without --baseline");
  H5Sget_simple_extent_dims(space_.native(), shape_.data(), nullptr);

  const property_list access(H5Pcreate(H5P_DATASET_ACCESS));
  const std::size_t cache_bytes =
      std::max<std::size_t>(bytes_of_chunk_row(dataset_.native(), shape_, H5Tget_size(stored.native())), 1 << 20);
  H5Pset_chunk_cache(access.native(), 12421, cache_bytes, 1.0);
  dataset_.reset();
  dataset_.reset(H5Dopen2(file_.native(), where.dataset.c_str(), access.native()));
}

void plain_reader::read(std::uint64_t first, std::uint64_t count, std::byte* out) {
  for (std::size_t n = 0; n < parts_.size() && count > 0; ++n) {
    const part& from = parts_[n];
    if (first >= from.first_row + from.rows) continue;
    if (open_ != n) open(from.where);
    open_ = n;
    const std::uint64_t here = std::min(count, from.first_row + from.rows - first);
    read_open(from, first - from.first_row, here, out);
    first += here, count -= here, out += here * row_bytes_;
  }
}

void plain_reader::read_open(const part& from, std::uint64_t first, std::uint64_t count, std::byte* out) {
  std::vector<hsize_t> start(shape_.size(), 0), extent(shape_);
  start[0] = first;
  extent[0] = count;
  H5Sselect_hyperslab(space_.native(), H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr);
  const hdf5_handle<H5Sclose> memory(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr));
  if (H5Dread(dataset_.native(), type_.native(), memory.native(), space_.native(), H5P_DEFAULT, out) < 0)
    refuse(from.where, fmt::format("cannot read the rows {} to {}", first, first + count - 1));
}

}  // namespace examples
