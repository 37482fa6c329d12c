#include "chunk_index.hpp"

#include <limits>

namespace penstock::io {
namespace {

struct collector {
  chunk_index index;
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

/// The base address, where this version of libhdf5 gives addresses without it (it does since 1.14.4).
std::uint64_t missing_base(hid_t dataset) {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  if (major > 1 || minor > 14 || (minor == 14 && release >= 4)) return 0;
  const file_id file(checked(H5Iget_file_id(dataset), "its file cannot be found"));
  const property_id creation(checked(H5Fget_create_plist(file.native()), "its file's properties cannot be read"));
  hsize_t user_block = 0;
  checked(H5Pget_userblock(creation.native(), &user_block), "its user block cannot be read");
  return user_block;
}

}  // namespace

chunk_index build_chunk_index(const std::filesystem::path&, const std::string&, hid_t dataset, const chunk_grid& grid) {
  const library_guard guard;
  collector all;
  all.index.resize(grid.chunks());
  all.grid = &grid;
  all.base = missing_base(dataset);
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
