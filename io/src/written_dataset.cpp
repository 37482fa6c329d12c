#include "written_dataset.hpp"

#include "failure.hpp"
#include "native_type.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

namespace penstock::io {
namespace {

std::size_t product_after_rows(const std::vector<std::uint64_t>& shape) {
  return std::accumulate(shape.begin() + 1, shape.end(), std::size_t{1}, std::multiplies<>{});
}

void check(std::string_view path, const std::vector<std::uint64_t>& shape, const create_options& options) {
  if (shape.empty()) throw std::invalid_argument(fmt::format("dataset {}: a shape needs at least the row axis", path));
  const auto& chunk = options.chunk_shape;
  if (chunk.empty() && (options.shuffle || options.deflate_level >= 0))
    throw std::invalid_argument(fmt::format("dataset {}: shuffle and compression need a chunk shape", path));
  if (options.deflate_level < -1 || options.deflate_level > 9)
    throw std::invalid_argument(
        fmt::format("dataset {}: deflate level {} is not in 0 to 9", path, options.deflate_level));
  if (chunk.empty()) return;
  if (chunk.size() != shape.size())
    throw std::invalid_argument(
        fmt::format("dataset {}: a chunk shape of {} axes for {} axes", path, chunk.size(), shape.size()));
  if (std::find(chunk.begin(), chunk.end(), 0u) != chunk.end())
    throw std::invalid_argument(fmt::format("dataset {}: a chunk's extents are at least 1", path));
}

/// Room for one row of chunks, so that writing row by row compresses each chunk once.
std::size_t chunk_cache_bytes(const std::vector<std::uint64_t>& shape, const std::vector<std::uint64_t>& chunk,
                              std::size_t element_bytes) {
  std::size_t bytes = element_bytes * chunk[0];
  for (std::size_t axis = 1; axis < shape.size(); ++axis)
    bytes *= (std::max<std::uint64_t>(shape[axis], 1) + chunk[axis] - 1) / chunk[axis] * chunk[axis];
  return std::clamp<std::size_t>(bytes, std::size_t{1} << 20, std::size_t{64} << 20);
}

/// How it is stored.
property_id creation_of(const create_options& options) {
  property_id how(checked(H5Pcreate(H5P_DATASET_CREATE), "dataset properties cannot be made"));
  checked(H5Pset_obj_track_times(how.native(), false), "the time of writing cannot be left out");
  checked(H5Pset_fill_time(how.native(), options.chunk_shape.empty() ? H5D_FILL_TIME_IFSET : H5D_FILL_TIME_NEVER),
          "the fill time cannot be set");
  if (options.chunk_shape.empty()) return how;
  const std::vector<hsize_t> chunk(options.chunk_shape.begin(), options.chunk_shape.end());
  checked(H5Pset_chunk(how.native(), static_cast<int>(chunk.size()), chunk.data()), "libhdf5 refuses the chunk shape");
  if (options.shuffle) checked(H5Pset_shuffle(how.native()), "shuffle cannot be set");
  if (options.deflate_level >= 0)
    checked(H5Pset_deflate(how.native(), static_cast<unsigned>(options.deflate_level)),
            "compression cannot be set: this libhdf5 is built without zlib");
  return how;
}

}  // namespace

written_dataset create_dataset(hid_t file, std::string_view name, type element, const std::vector<std::uint64_t>& shape,
                               const create_options& options) {
  check(name, shape, options);
  const library_guard guard;
  const property_id links(checked(H5Pcreate(H5P_LINK_CREATE), "link properties cannot be made"));
  checked(H5Pset_create_intermediate_group(links.native(), 1), "groups cannot be made");
  const property_id how = creation_of(options);
  const property_id access(checked(H5Pcreate(H5P_DATASET_ACCESS), "dataset properties cannot be made"));
  if (!options.chunk_shape.empty())
    checked(
        H5Pset_chunk_cache(access.native(), 521, chunk_cache_bytes(shape, options.chunk_shape, size_of(element)), 1.0),
        "the chunk cache cannot be set");
  const std::vector<hsize_t> extents(shape.begin(), shape.end());
  const space_id space(checked(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
                               "libhdf5 refuses the shape"));
  const type_id stored = native_type(element);
  dataset_id id(checked(H5Dcreate2(file, std::string(name).c_str(), stored.native(), space.native(), links.native(),
                                   how.native(), access.native()),
                        "the dataset cannot be created"));
  return {std::move(id), element, shape, product_after_rows(shape) * size_of(element), options.chunk_shape};
}

void write_rows(const written_dataset& to, std::uint64_t first, std::uint64_t count, std::span<const std::byte> bytes) {
  const library_guard guard;
  std::vector<hsize_t> start(to.shape.size(), 0), extent(to.shape.begin(), to.shape.end());
  start[0] = first;
  extent[0] = count;
  const space_id from(
      checked(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr), "rows cannot be described"));
  const space_id where(checked(H5Dget_space(to.id.native()), "rows cannot be described"));
  checked(H5Sselect_hyperslab(where.native(), H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr),
          "rows cannot be selected");
  const type_id memory = native_type(to.element);
  checked(H5Dwrite(to.id.native(), memory.native(), from.native(), where.native(), H5P_DEFAULT, bytes.data()),
          "the rows cannot be written; check the free space");
}

void write_chunk(const written_dataset& to, std::uint64_t first, std::uint32_t skipped_filters,
                 std::span<const std::byte> encoded) {
  const library_guard guard;
  std::vector<hsize_t> start(to.shape.size(), 0);
  start[0] = first;
  checked(H5Dwrite_chunk(to.id.native(), H5P_DEFAULT, skipped_filters, start.data(), encoded.size(), encoded.data()),
          "the chunk cannot be written; check the free space");
}

}  // namespace penstock::io
