#include "plain_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>

namespace examples {
namespace {

using property_list = penstock::handle<hdf5_traits<H5Pclose>>;

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

plain_reader::plain_reader(const std::string& file, const std::string& dataset) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  file_.reset(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  dataset_.reset(H5Dopen2(file_.native(), dataset.c_str(), H5P_DEFAULT));
  if (!dataset_) throw std::runtime_error(fmt::format("{}: {}: the baseline cannot open it", file, dataset));
  space_.reset(H5Dget_space(dataset_.native()));
  const penstock::handle<hdf5_traits<H5Tclose>> stored(H5Dget_type(dataset_.native()));
  type_.reset(H5Tget_native_type(stored.native(), H5T_DIR_ASCEND));
  shape_.resize(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space_.native())));
  if (shape_.empty()) throw std::invalid_argument("the baseline reads rows, and the dataset is a single value");
  H5Sget_simple_extent_dims(space_.native(), shape_.data(), nullptr);
  const std::size_t element_bytes = H5Tget_size(type_.native());
  row_bytes_ = std::accumulate(shape_.begin() + 1, shape_.end(), element_bytes, std::multiplies<std::size_t>{});

  const property_list access(H5Pcreate(H5P_DATASET_ACCESS));
  const std::size_t cache_bytes =
      std::max<std::size_t>(bytes_of_chunk_row(dataset_.native(), shape_, element_bytes), 1 << 20);
  H5Pset_chunk_cache(access.native(), 12421, cache_bytes, 1.0);
  dataset_.reset();
  dataset_.reset(H5Dopen2(file_.native(), dataset.c_str(), access.native()));
}

void plain_reader::read(std::uint64_t first, std::uint64_t count, std::byte* out) {
  std::vector<hsize_t> start(shape_.size(), 0), extent(shape_);
  start[0] = first;
  extent[0] = count;
  H5Sselect_hyperslab(space_.native(), H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr);
  const penstock::handle<hdf5_traits<H5Sclose>> memory(
      H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr));
  if (H5Dread(dataset_.native(), type_.native(), memory.native(), space_.native(), H5P_DEFAULT, out) < 0)
    throw std::runtime_error(fmt::format("the baseline cannot read the rows {} to {}", first, first + count - 1));
}

}  // namespace examples
