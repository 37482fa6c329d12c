#include "chunk_index.hpp"

#include <array>

namespace penstock::io {

bool agrees_with_library(const chunk_index& index, hid_t file, hid_t dataset, const chunk_grid& grid) {
  if (index.empty()) return true;
  const library_guard guard;
  const property_id creation(checked(H5Fget_create_plist(file), "its file's properties cannot be read"));
  hsize_t user_block = 0;
  checked(H5Pget_userblock(creation.native(), &user_block), "its user block cannot be read");
  const std::array<std::size_t, 3> samples{0, index.size() / 2, index.size() - 1};
  for (const auto n : samples) {
    const auto at = grid.position(n);
    std::array<hsize_t, max_rank> offset{};
    for (std::size_t k = 0; k < grid.rank(); ++k) offset[k] = at[k] * grid.chunk_shape()[k];
    unsigned mask = 0;
    haddr_t address = HADDR_UNDEF;
    hsize_t bytes = 0;
    if (H5Dget_chunk_info_by_coord(dataset, offset.data(), &mask, &address, &bytes) < 0) return false;
    const auto& entry = index[n];
    if (address == HADDR_UNDEF) {
      if (entry.address != chunk_entry::missing) return false;
      continue;
    }
    // Libraries before 1.14.4 leave the user block out of the address.
    if ((address != entry.address && address + user_block != entry.address) || bytes != entry.bytes ||
        mask != entry.mask)
      return false;
  }
  return true;
}

}  // namespace penstock::io
