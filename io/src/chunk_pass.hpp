#pragma once

#include "chunked_reader.hpp"

#include <array>

namespace penstock::io {

/// One read of a chunked dataset: visits the chunks that the request touches, and decodes neighbours from one read.
class chunked_reader::pass {
 public:
  pass(const chunked_reader& reader, const read_request& request, scratch& s);
  void run();

 private:
  void visit_all(const extents& first, const extents& last);
  void visit_stored(const extents& first, const extents& last);
  void visit(const extents& at);
  bool spreads_whole(const box& inside, const box& wanted) const;
  void read_plain(const chunk_entry& entry, const box& inside, const box& wanted);
  void read_cut(std::uint64_t number, const box& inside, const box& wanted);
  bool lies_inside(const chunk_entry& entry) const noexcept;
  void gather(std::uint64_t number);
  void decode_gathered();
  std::span<const std::byte> read_together(std::size_t count, std::uint64_t bytes);
  std::size_t spread_side_by_side(std::size_t n, std::size_t count, const std::byte* stored);
  void decode_to_request(std::uint64_t number, std::span<const std::byte> stored);
  void decode_to_slot(std::uint64_t number, const box& inside, std::span<std::byte> chunk);
  void decode(std::uint64_t number, const box& inside, std::span<const std::byte> stored, std::span<std::byte> chunk);
  std::span<const std::byte> read_chunk(const chunk_entry& entry);
  row_range rows_of(std::uint64_t number) const;
  template <class F>
  void with_rows(std::uint64_t number, const row_range& rows, F&& f) const;
  void read_by_library(const read_request& request, const not_decodable& why);
  void copy_out(const std::byte* chunk, const box& inside, const box& wanted);

  static constexpr std::size_t most_gathered = 64;

  const chunked_reader& reader_;
  const read_request& request_;
  scratch& scratch_;
  std::shared_ptr<raw_file> file_;
  merged_reads reads_;
  std::array<std::uint64_t, most_gathered> gathered_{};  // numbers of chunks that follow each other in the file
  std::size_t gathered_count_ = 0;
  std::uint64_t gathered_bytes_ = 0;
};

}  // namespace penstock::io
