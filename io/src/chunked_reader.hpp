#pragma once

#include "chunk_index.hpp"
#include "dataset_reader.hpp"
#include "filters/filter_chain.hpp"
#include "library_reader.hpp"
#include "strided_read.hpp"

#include <optional>
#include <vector>

namespace penstock::io {

/// A chunk as it lies in the file.
struct stored_chunk {
  std::vector<std::byte> bytes;  ///< undecoded
  std::uint32_t mask = 0;        ///< bit n set: filter n was not applied
  bool operator==(const stored_chunk&) const = default;
};

/// Reads chunks by positioned reads and decodes them on the calling thread, outside libhdf5.
class chunked_reader final : public dataset_reader {
 public:
  /// `file` has the data; through the file `through` leads the dataset's path. `number` names it in the world's cache
  /// and set of open ones.
  chunked_reader(read_world& world, std::size_t file, std::size_t through, std::size_t number,
                 shared_description description, chunk_grid grid, chunk_index index);

  reader_memory memory(std::size_t row_axis) const override;
  std::uint64_t decoded_rows(std::size_t row_axis) const override { return library_.decoded_rows(row_axis); }
  void read(const read_request& request, scratch& s) const override;

  /// The first stored chunk, and with `most` over 1 those in the middle and at the end.
  std::vector<box> sample_chunks(std::size_t most) const;
  /// What is stored for the chunk that holds `part`; no bytes where it does not lie inside the file. Throws failure.
  stored_chunk stored(const box& part) const;
  /// Whether the chunk that is `part` is damaged, whoever reads it: nothing is stored for it, or it goes through no
  /// filter and another number of bytes than it has is stored.
  bool has_wrong_size(const box& part) const;

 private:
  class pass;  // one read

  chunk_entry entry_of(const box& part) const noexcept;
  bool has_wrong_size(const chunk_entry& entry, const box& inside) const noexcept;
  bool is_plain(const chunk_entry& entry, const box& inside) const noexcept;
  std::uint32_t mask_of(const chunk_entry& entry, const box& inside) const noexcept;

  read_world& world_;
  std::size_t file_, number_;
  chunk_grid grid_;
  chunk_index index_;
  filter_chain filters_;
  std::size_t value_bytes_, member_offset_, chunk_bytes_;
  extents chunk_strides_{};
  bool partial_unfiltered_;
  fill_value fill_value_;
  std::optional<std::size_t> largest_stored_;  // of the chunks that lie inside the file; nothing where none does
  library_reader library_;                     // for chunks that the decoders do not know
};

}  // namespace penstock::io
