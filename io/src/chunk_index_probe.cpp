#include "address_driver.hpp"
#include "chunk_index.hpp"

#include <array>
#include <limits>

namespace penstock::io {
namespace {

/// Whether a chunk that could not be looked up simply is not there.
bool is_missing(hid_t dataset, const hsize_t* offset) {
  const auto messages = library_messages();
  if (messages.find("address isn't defined") != std::string::npos) return true;
  hsize_t bytes = 0;
  return H5Dget_chunk_storage_size(dataset, offset, &bytes) >= 0 && bytes == 0;
}

chunk_entry look_up(address_driver& driver, hid_t dataset, const hsize_t* offset) {
  std::uint32_t mask = 0;
  std::array<std::byte, 64> untouched{};  // the driver skips the transfer
  driver.note();
  const auto status = H5Dread_chunk(dataset, H5P_DEFAULT, offset, &mask, untouched.data());
  const auto where = driver.noted();
  if (status < 0) {
    if (is_missing(dataset, offset)) return {};
    throw failure("its chunk index cannot be read; check the file with h5dump -H", 0, library_messages());
  }
  if (!where) throw failure("its chunks are not where this version of libhdf5 was expected to look");
  if (where->bytes > std::numeric_limits<std::uint32_t>::max()) throw failure("it has stored chunks of 4 GiB and more");
  return {where->address, static_cast<std::uint32_t>(where->bytes), mask};
}

}  // namespace

std::vector<chunk_entry> build_chunk_index(const std::filesystem::path& path, const std::string& name, hid_t,
                                           const chunk_grid& grid) {
  const library_guard guard;
  address_driver driver(path);
  const dataset_id dataset(
      checked(H5Dopen2(driver.file(), name.c_str(), H5P_DEFAULT), "it cannot be opened a second time"));
  std::vector<chunk_entry> index(grid.chunks());
  extents at{};
  std::array<hsize_t, max_rank> offset{};
  for (auto& entry : index) {
    entry = look_up(driver, dataset.native(), offset.data());
    for (std::size_t k = grid.rank(); k-- > 0;) {
      if (++at[k] < grid.counts()[k]) {
        offset[k] += grid.chunk_shape()[k];
        break;
      }
      at[k] = 0;
      offset[k] = 0;
    }
  }
  return index;
}

}  // namespace penstock::io
