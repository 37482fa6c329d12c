#pragma once

#include "chunk_grid.hpp"
#include "identifier.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace penstock::io {

/// Where one chunk lies in the file.
struct chunk_entry {
  static constexpr std::uint64_t missing = ~std::uint64_t{0};

  std::uint64_t address = missing;  ///< from the file's first byte, user block included
  std::uint32_t bytes = 0;          ///< stored
  std::uint32_t mask = 0;           ///< bit n set: filter n was not applied
};

/// The chunks of one dataset, by number: 16 bytes for each there could be, or 24 for each of a few that are stored.
class chunk_index {
 public:
  /// All chunks, missing ones too, in the order of their numbers.
  explicit chunk_index(std::vector<chunk_entry> all) : all_(std::move(all)) {}
  struct numbered {
    std::uint64_t number = 0;
    chunk_entry entry;
  };
  /// The chunks that are stored, in any order.
  explicit chunk_index(std::vector<numbered> stored);

  chunk_entry operator[](std::uint64_t number) const noexcept;
  /// Whether it lists stored chunks alone.
  bool sparse() const noexcept { return all_.empty(); }
  /// Of a sparse one: the stored chunks numbered from `first` to `last`, that too.
  std::span<const numbered> stored_between(std::uint64_t first, std::uint64_t last) const noexcept;
  std::size_t bytes() const noexcept { return all_.size() * sizeof(chunk_entry) + stored_.size() * sizeof(numbered); }

  /// Calls `f(number, entry)` for stored chunks in order, until it returns false.
  template <class F>
  void visit_stored(F&& f) const {
    for (std::size_t n = 0; n < all_.size(); ++n)
      if (all_[n].address != chunk_entry::missing && !f(n, all_[n])) return;
    for (const auto& s : stored_)
      if (!f(s.number, s.entry)) return;
  }

 private:
  std::vector<chunk_entry> all_;
  std::vector<numbered> stored_;  // sorted by number
};

/// More chunks than this (1 GiB of index) are left to libhdf5.
inline constexpr std::uint64_t max_indexed_chunks = std::uint64_t{1} << 26;

/// Asks libhdf5 for all chunks. The dataset's file was opened with read_only_access. Throws failure.
std::vector<chunk_entry> build_chunk_index(hid_t dataset, const chunk_grid& grid);

/// By H5Dchunk_iter; nothing where this libhdf5 has none.
std::optional<std::vector<chunk_entry>> iterate_chunks(hid_t dataset, const chunk_grid& grid);
/// By noting where H5Dread_chunk reads each.
std::vector<chunk_entry> probe_chunks(hid_t dataset, const chunk_grid& grid);

/// Whether libhdf5 may list chunks under wrong coordinates: of a dataset with one unlimited axis that is not the first,
/// in the newest format, it keeps the axes in another order, and H5Dget_chunk_info (seen in 1.10.8) does not put them
/// back.
bool lists_wrong_coordinates(hid_t dataset);

/// The few chunks that are stored, by H5Dget_chunk_info: for datasets of which almost nothing is written. Nothing where
/// there are more than `most`. `user_block`: of the file.
std::optional<std::vector<chunk_index::numbered>> list_stored_chunks(hid_t dataset, const chunk_grid& grid,
                                                                     std::uint64_t user_block, std::uint64_t most);

/// Whether a few entries are what H5Dget_chunk_info_by_coord says. That call scans: a few only.
bool agrees_with_library(const chunk_index& index, hid_t dataset, const chunk_grid& grid, std::uint64_t user_block);

/// Bytes before the file's HDF5 part.
std::uint64_t user_block_of(hid_t file);

/// Whether this libhdf5 gives addresses of chunks without the user block (it does before 1.14.4).
bool addresses_lack_user_block();

}  // namespace penstock::io
