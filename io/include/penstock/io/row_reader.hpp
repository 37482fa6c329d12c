#pragma once

#include <penstock/bytes.hpp>
#include <penstock/fault.hpp>
#include <penstock/io/dataset_info.hpp>
#include <penstock/io/location.hpp>
#include <penstock/io/value_options.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace penstock::io {

struct read_options {
  std::size_t open_files = 64;  ///< at most so many files are held open at once
  /// Read virtual datasets whose sources are not all there: what is missing gives fill values, as in libhdf5.
  bool allow_missing_sources = false;
  /// Reads raw bytes around the page cache (O_DIRECT), for files that are read once or are larger than memory: nothing
  /// else is pushed out of it. Costs one copy, and 1 MiB of scratch for each read at a time. Where a file system
  /// refuses, reads go through the page cache and dataset_info::reason says so. What libhdf5 reads is not concerned.
  bool around_page_cache = false;
  value_options values{};  ///< what reading makes of stored values
  fault_seam faults{};     ///< for tests
};

/// The bulk host memory that reading takes: planned first, then allocated once by row_reader::reserve.
struct read_resources {
  std::size_t concurrency = 1;  ///< reads that run at once; each has scratch of its own
  std::size_t cache_bytes = 0;  ///< for decoded chunks that reads cut; 0: cut_bytes() * concurrency
};

/// One itemised piece of the bulk host memory that a reader holds.
struct memory_item {
  std::string name;
  std::size_t bytes = 0;
};

/// What the reads of a reader did so far; opening does not count.
struct read_statistics {
  std::uint64_t stored_bytes = 0;   ///< read from files
  std::uint64_t decoded_bytes = 0;  ///< put out by decoders
  std::uint64_t chunks_decoded = 0;
  std::uint64_t locked_bytes = 0;  ///< that libhdf5 read, under its mutex
  double read_seconds = 0;         ///< in positioned reads, summed over threads
  double decode_seconds = 0;       ///< in decoders, summed over threads
  double lock_seconds = 0;         ///< inside or waiting for libhdf5's mutex, summed over threads
};

/// The rows of one field: an ordered list of datasets (segments) joined by row, with one type and one row shape.
///
/// Opening describes each dataset and builds its chunk index; reserve() allocates what reading needs, and reads
/// allocate no bulk memory. Rows are given as they are stored, unless value_options say otherwise: element() says in
/// which type and byte order. Reading is thread-safe, up to `concurrency` reads at once; more wait for their turn.
class row_reader {
 public:
  /// Throws io::error: a file or dataset is missing, segments differ in type or row shape, a type is not readable.
  explicit row_reader(std::vector<location> segments, read_options options = {});
  row_reader(row_reader&&) noexcept;
  row_reader& operator=(row_reader&&) noexcept;
  ~row_reader();

  std::uint64_t rows() const noexcept;
  /// Shape of one row: the dataset's extents after the row axis. Fixed strings and opaque data gain a last axis of
  /// bytes.
  const std::vector<std::uint64_t>& row_shape() const noexcept;
  /// Type and byte order of the elements that read() gives.
  const element_type& element() const noexcept;
  std::size_t row_bytes() const noexcept;
  /// Texts of variable length are given as int32 codes: places in this list, which is sorted. Empty for other types.
  const std::vector<std::string>& class_names() const noexcept;
  /// Rows that storage keeps together: the chunk's extent along the row axis (of the first segment), 1 where rows lie
  /// one by one. Reads that start and end at multiples of it within a segment decode no chunk twice.
  std::uint64_t chunk_rows() const noexcept;

  struct segment {
    location where;
    std::uint64_t first_row = 0;  ///< in this field
    std::uint64_t rows = 0;
    dataset_info info;
    std::uint64_t cut_rows = 0;  ///< of the tallest chunk in it that an end of a read can cut; see cut_rows() below
  };
  const std::vector<segment>& segments() const noexcept;
  /// The segment that holds `row` (< rows()).
  const segment& segment_of(std::uint64_t row) const;

  /// Bulk host memory that the reader would hold with `resources`, itemised: chunk index, mappings of virtual
  /// datasets and staged datasets (held already), scratch, cache of decoded chunks. Pure: allocates nothing.
  std::vector<memory_item> memory(const read_resources& resources) const;
  /// Decoded bytes of the chunks that an end of a read can cut: one row of chunks. 0 where no chunk is ever decoded
  /// twice.
  std::size_t cut_bytes() const noexcept;
  /// Rows of the tallest such chunk, over all segments and the sources of virtual datasets. 0 where cut_bytes() is 0.
  std::uint64_t cut_rows() const noexcept;
  /// Rows of the tallest chunk that goes through filters, over all segments and the sources of virtual datasets. As the
  /// files describe them: the same however they are read, here or by libhdf5. 0 where every such chunk is one row.
  std::uint64_t decoded_rows() const noexcept;
  /// Allocates what memory(resources) says. Call once before the first read (a read without it reserves for one).
  /// Not thread-safe. Throws io::error where memory is refused.
  void reserve(const read_resources& resources);

  /// Fills `out` (count * row_bytes() bytes exactly) with the rows [first, first + count). Both may cross segments.
  /// Throws io::error that names file, dataset and rows; `out` is then undefined. std::invalid_argument past the end.
  void read(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const;

  read_statistics statistics() const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace penstock::io
