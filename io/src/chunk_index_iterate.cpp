#include "chunk_index.hpp"

#include <limits>

namespace penstock::io {
namespace {

struct collector {
  std::vector<chunk_entry> index;
  const chunk_grid* grid = nullptr;
  std::uint64_t base = 0;  // what the library leaves out of addresses
  bool fits = true;

  void add(const hsize_t* offset, std::uint64_t mask, std::uint64_t address, std::uint64_t bytes) {
    extents at{};
    for (std::size_t k = 0; k < grid->rank(); ++k) {
      at[k] = offset[k] / grid->chunk_shape()[k];
      if (at[k] >= grid->counts()[k]) return;  // past the end of a dataset that was shrunk
    }
    if (address == HADDR_UNDEF) return;
    if (bytes > std::numeric_limits<std::uint32_t>::max()) fits = false;
    index[grid->number(at)] = {address + base, static_cast<std::uint32_t>(bytes), static_cast<std::uint32_t>(mask)};
  }
};

}  // namespace

std::optional<std::vector<chunk_entry>> iterate_chunks(hid_t dataset, const chunk_grid& grid) {
  const library_guard guard;
  collector all;
  all.index.resize(grid.chunks());
  all.grid = &grid;
  const file_id file(checked(H5Iget_file_id(dataset), "its file cannot be found"));
  if (addresses_lack_user_block()) all.base = user_block_of(file.native());
  // The integer types of the callback differ between versions.
  const H5D_chunk_iter_op_t add = [](const hsize_t* offset, auto mask, haddr_t address, auto bytes, void* to) -> int {
    static_cast<collector*>(to)->add(offset, mask, address, bytes);
    return 0;
  };
  checked(H5Dchunk_iter(dataset, H5P_DEFAULT, add, &all),
          "its chunk index cannot be read; check the file with h5dump -H");
  if (!all.fits) throw failure("it has stored chunks of 4 GiB and more");
  return std::move(all.index);
}

}  // namespace penstock::io
