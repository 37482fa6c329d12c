#include "chunk_index.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace penstock::io {
namespace {

std::array<hsize_t, max_rank> offset_of(std::uint64_t number, const chunk_grid& grid) {
  const auto at = grid.position(number);
  std::array<hsize_t, max_rank> offset{};
  for (std::size_t k = 0; k < grid.rank(); ++k) offset[k] = at[k] * grid.chunk_shape()[k];
  return offset;
}

}  // namespace

chunk_index::chunk_index(std::vector<numbered> stored) : stored_(std::move(stored)) {
  std::sort(stored_.begin(), stored_.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
}

chunk_entry chunk_index::operator[](std::uint64_t number) const noexcept {
  if (!all_.empty()) return all_[number];
  const auto found =
      std::lower_bound(stored_.begin(), stored_.end(), number, [](const auto& s, auto n) { return s.number < n; });
  return found != stored_.end() && found->number == number ? found->entry : chunk_entry{};
}

std::span<const chunk_index::numbered> chunk_index::stored_between(std::uint64_t first,
                                                                   std::uint64_t last) const noexcept {
  const auto before = [](const numbered& s, std::uint64_t n) { return s.number < n; };
  const auto after = [](std::uint64_t n, const numbered& s) { return n < s.number; };
  const auto begin = std::lower_bound(stored_.begin(), stored_.end(), first, before);
  return {begin, std::upper_bound(begin, stored_.end(), last, after)};
}

std::uint64_t user_block_of(hid_t file) {
  const library_guard guard;
  const property_id creation(checked(H5Fget_create_plist(file), "its file's properties cannot be read"));
  hsize_t user_block = 0;
  checked(H5Pget_userblock(creation.native(), &user_block), "its user block cannot be read");
  return user_block;
}

bool addresses_lack_user_block() {
  const library_guard guard;
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return major == 1 && (minor < 14 || (minor == 14 && release < 4));
}

bool lists_wrong_coordinates(hid_t dataset) {
  const library_guard guard;
  const space_id space(checked(H5Dget_space(dataset), "its shape cannot be read"));
  std::array<hsize_t, max_rank> now{}, most{};
  const int rank =
      checked(H5Sget_simple_extent_dims(space.native(), now.data(), most.data()), "its shape cannot be read");
  const auto end = most.begin() + rank;
  return std::count(most.begin(), end, H5S_UNLIMITED) == 1 && most[0] != H5S_UNLIMITED;
}

std::vector<chunk_entry> build_chunk_index(hid_t dataset, const chunk_grid& grid) {
  if (!lists_wrong_coordinates(dataset))
    if (auto all = iterate_chunks(dataset, grid)) return std::move(*all);
  return probe_chunks(dataset, grid);
}

std::optional<std::vector<chunk_index::numbered>> list_stored_chunks(hid_t dataset, const chunk_grid& grid,
                                                                     std::uint64_t user_block, std::uint64_t most) {
  const library_guard guard;
  const space_id space(checked(H5Dget_space(dataset), "its shape cannot be read"));
  hsize_t count = 0;
  checked(H5Dget_num_chunks(dataset, space.native(), &count), "its chunks cannot be counted");
  if (count > most) return std::nullopt;
  std::vector<chunk_index::numbered> stored;
  const auto base = addresses_lack_user_block() ? user_block : 0;
  for (hsize_t n = 0; n < count; ++n) {
    std::array<hsize_t, max_rank> offset{};
    unsigned mask = 0;
    haddr_t address = HADDR_UNDEF;
    hsize_t bytes = 0;
    checked(H5Dget_chunk_info(dataset, space.native(), n, offset.data(), &mask, &address, &bytes),
            "its chunk index cannot be read; check the file with h5dump -H");
    extents at{};
    bool inside = address != HADDR_UNDEF;
    for (std::size_t k = 0; k < grid.rank(); ++k) {
      at[k] = offset[k] / grid.chunk_shape()[k];
      inside = inside && at[k] < grid.counts()[k];
    }
    if (bytes > std::numeric_limits<std::uint32_t>::max()) throw failure("it has stored chunks of 4 GiB and more");
    if (inside) stored.push_back({grid.number(at), {address + base, static_cast<std::uint32_t>(bytes), mask}});
  }
  return stored;
}

bool agrees_with_library(const chunk_index& index, hid_t dataset, const chunk_grid& grid, std::uint64_t user_block) {
  if (grid.chunks() == 0 || lists_wrong_coordinates(dataset)) return true;
  const library_guard guard;
  for (const auto n : {std::uint64_t{0}, grid.chunks() / 2, grid.chunks() - 1}) {
    const auto offset = offset_of(n, grid);
    unsigned mask = 0;
    haddr_t address = HADDR_UNDEF;
    hsize_t bytes = 0;
    if (H5Dget_chunk_info_by_coord(dataset, offset.data(), &mask, &address, &bytes) < 0) return false;
    const auto entry = index[n];
    if (address == HADDR_UNDEF) {
      if (entry.address != chunk_entry::missing) return false;
      continue;
    }
    // Whether an address holds the user block differs between versions, and between indexes.
    const bool same_place = address == entry.address || address + user_block == entry.address;
    if ((!same_place && bytes > 0) || bytes != entry.bytes || mask != entry.mask) return false;
  }
  return true;
}

}  // namespace penstock::io
