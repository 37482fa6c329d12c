#pragma once

#include "box.hpp"
#include "scratch.hpp"

#include <cstddef>

namespace penstock::io {

/// A part of a dataset that is wanted, and where its values go.
struct read_request {
  box part;
  std::size_t row_axis = 0;  ///< along which reads follow each other
  std::byte* out = nullptr;
  extents strides{};  ///< bytes between neighbours in `out`, along each axis of the dataset

  std::byte* at(const extents& start) const noexcept {
    std::byte* p = out;
    for (std::size_t k = 0; k < part.rank; ++k) p += (start[k] - part.start[k]) * strides[k];
    return p;
  }
};

/// Bulk memory that a reader wants or holds.
struct reader_memory {
  scratch_sizes scratch;             ///< of each read at a time
  std::size_t cut_chunks = 0;        ///< chunks that the end of a read can cut, worth keeping decoded
  std::size_t chunk_bytes = 0;       ///< of each
  std::uint64_t cut_rows = 0;        ///< extent of the tallest of them along the row axis
  std::size_t index_bytes = 0;       ///< held
  std::size_t mapping_bytes = 0;     ///< held, of virtual datasets
  std::size_t staged_bytes = 0;      ///< held
  std::size_t check_bytes = 0;       ///< of a half of check_memory
  std::size_t library_bytes = 0;     ///< libhdf5's chunk cache while the dataset is open in it
  std::size_t library_datasets = 0;  ///< that are opened in libhdf5 to be read
};

/// Reads parts of one dataset in one way. Thread-safe.
class dataset_reader {
 public:
  virtual ~dataset_reader() = default;
  virtual reader_memory memory(std::size_t row_axis) const = 0;
  /// row_reader::decoded_rows: by what the file says, not by how it is read here.
  virtual std::uint64_t decoded_rows(std::size_t /*row_axis*/) const { return 0; }
  /// Throws failure. `s` has at least the sizes of memory(row_axis).scratch.
  virtual void read(const read_request& request, scratch& s) const = 0;
};

}  // namespace penstock::io
