#include "chunk_index.hpp"
#include "read_driver.hpp"

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

/// Whether nothing was read of a chunk since it is there and has no bytes. (H5Dget_chunk_storage_size gives the size of
/// a whole chunk without filters, whatever the index says.) Scans.
bool has_no_bytes(hid_t dataset, const hsize_t* offset) {
  unsigned mask = 0;
  haddr_t address = HADDR_UNDEF;
  hsize_t bytes = 0;
  return H5Dget_chunk_info_by_coord(dataset, offset, &mask, &address, &bytes) >= 0 && address != HADDR_UNDEF &&
         bytes == 0;
}

/// `empty_seen`: one without bytes was found, so that others need no scan.
chunk_entry look_up(noted_reads& reads, hid_t dataset, const hsize_t* offset, bool& empty_seen) {
  std::uint32_t mask = 0;
  std::array<std::byte, 64> untouched{};  // the driver skips the transfer
  reads.clear();
  if (H5Dread_chunk(dataset, H5P_DEFAULT, offset, &mask, untouched.data()) < 0) {
    if (is_missing(dataset, offset)) return {};
    throw failure("its chunk index cannot be read; check the file with h5dump -H", 0, library_messages());
  }
  const auto where = reads.only();
  if (!where && (empty_seen || has_no_bytes(dataset, offset))) {
    empty_seen = true;
    return {0, 0, mask};  // damaged, wherever it lies
  }
  if (!where) throw failure("its chunks are not where this version of libhdf5 was expected to look");
  if (where->bytes > std::numeric_limits<std::uint32_t>::max()) throw failure("it has stored chunks of 4 GiB and more");
  return {where->address, static_cast<std::uint32_t>(where->bytes), mask};
}

}  // namespace

std::vector<chunk_entry> probe_chunks(hid_t dataset, const chunk_grid& grid) {
  const library_guard guard;
  const file_id file(checked(H5Iget_file_id(dataset), "its file cannot be found"));
  noted_reads reads(file.native());
  std::vector<chunk_entry> index(grid.chunks());
  bool empty_seen = false;
  extents at{};
  std::array<hsize_t, max_rank> offset{};
  for (auto& entry : index) {
    entry = look_up(reads, dataset, offset.data(), empty_seen);
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
