#pragma once

#include <penstock/fault.hpp>
#include <penstock/type.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace penstock::io {

/// How a dataset is stored.
struct create_options {
  std::vector<std::uint64_t> chunk_shape{};  ///< empty: contiguous
  int deflate_level = -1;                    ///< 0 to 9; -1: not compressed. Needs chunks
  bool shuffle = false;                      ///< bytes shuffled before compression. Needs chunks
};

/// Writes one HDF5 file that is there whole or not at all: everything goes into a temporary file beside it, which
/// commit() syncs to the disk and renames. Without commit() the temporary file is removed and an older file of that
/// name stays. Symbolic links stay: what they name is written. Several processes may write it, and the last to commit
/// has the name; a second writer of one process is refused. What killed ones left (NAME.partial-PID) is removed. The
/// same calls give the same bytes, whenever they are made: no times are stored.
///
/// Not thread-safe; other files may be read meanwhile. Every function throws io::error that names the file and dataset,
/// and std::invalid_argument for an argument that contradicts itself or the dataset.
class writer {
 public:
  /// `faults` is asked at open_file, read_file, write_file, sync_file (the file, then its folder) and rename_file,
  /// before each call of the system.
  explicit writer(std::filesystem::path path, fault_seam faults = {});
  writer(writer&&) noexcept;
  writer& operator=(writer&&) noexcept;
  ~writer();

  /// Creates a dataset, and the groups above it. The first axis of `shape` counts rows.
  void create(std::string_view dataset_path, type element, const std::vector<std::uint64_t>& shape,
              const create_options& options = {});
  /// Writes the rows [first_row, first_row + count): `bytes` holds them one after another, in this machine's byte
  /// order. Fastest where pieces are whole chunks.
  void write_rows(std::string_view dataset_path, std::uint64_t first_row, std::uint64_t count,
                  std::span<const std::byte> bytes);
  /// Writes one chunk as it is stored, for callers that compress on threads of their own: the rows from `first_row` (a
  /// multiple of the chunk's) on, filled up to a whole chunk, shuffled and compressed as create() was told. Bit n of
  /// `skipped_filters` says that filter n was not applied. Only for chunks of whole rows.
  void write_encoded_chunk(std::string_view dataset_path, std::uint64_t first_row, std::uint32_t skipped_filters,
                           std::span<const std::byte> encoded);
  /// Sets a text attribute of a group or dataset that exists ("/" is the file's).
  void attribute(std::string_view object_path, std::string_view name, std::string_view text);
  /// Closes, syncs, renames and syncs the folder. Nothing may be written afterwards.
  void commit();
  /// The same, with a checksum of the whole file behind HDF5's end of it: check_seal() (seal.hpp) tells damage then
  /// before libhdf5 sees the file. Who changes such a file in place breaks its seal.
  void commit_sealed();

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace penstock::io
