#pragma once

#include "open_reader.hpp"
#include "row_format.hpp"
#include "value_conversion.hpp"

#include <penstock/io/row_reader.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace penstock::io {

/// One dataset of a field, ready to be read.
struct open_segment {
  std::unique_ptr<dataset_reader> reader;
  padding text_padding = padding::none;
  std::size_t text_bytes = 0;  // of one string
  std::size_t row_axis = 0;
  box part;  // of the dataset: what all rows give
  // Where libhdf5 reads a virtual dataset: of a half of check_memory for its sources, and of its mappings while open.
  std::size_t check_bytes = 0, mapping_bytes = 0;
  packing packed;
  std::string not_packed;  // why its attributes cannot say how it is packed
  value_conversion conversion;
};

struct row_reader::impl {
  impl(std::vector<location> where, const read_options& options);

  static error_context place(const location& l, row_range rows) {
    return {.file = l.file.string(), .dataset = l.dataset, .rows = rows, .hdf5 = {}, .system = 0};
  }

  void add(location where);
  void open_file_of(const location& where);
  void tell_caching(dataset_info& info, std::size_t file);
  void convert(const value_options& values);
  void sum_up();
  void number_labels();
  std::size_t cache_slots(const read_resources& resources) const noexcept;
  std::vector<memory_item> memory(const read_resources& resources) const;
  void reserve(const read_resources& resources);
  void reserve_if_needed();
  void read_segment(std::size_t n, std::uint64_t first, std::uint64_t count, std::byte* out, scratch& s) const;
  void read_stored(std::size_t n, std::uint64_t first, std::uint64_t count, std::byte* out, scratch& s) const;
  std::uint64_t rows_of_piece(std::size_t n, std::uint64_t first, std::uint64_t count) const;
  std::size_t number_of_segment(std::uint64_t row) const;

  mutable read_world world;
  row_format stored, given;  // rows in the files, and as read() gives them
  std::vector<segment> segments;
  std::vector<open_segment> opened;
  std::vector<std::string> class_names;
  std::uint64_t rows = 0;
  std::size_t open_files = 1;
  bool allow_missing_sources = false;
  std::uint64_t decoded_rows = 0;
  reader_memory needs;                                    // the largest of each, but the sums of what is held
  std::size_t open_mapping_bytes = 0, open_mappings = 0;  // the largest of open_segment::mapping_bytes, and how many
  std::unique_ptr<scratch_pool> scratches;
  std::mutex reserving;
  std::atomic<bool> is_reserved{false};

  struct {
    std::filesystem::path path;
    file_id file, linked;
    std::size_t number = 0;
  } current;  // while opening: segments of one file follow each other
};

}  // namespace penstock::io
