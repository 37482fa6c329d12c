#include "contiguous_reader.hpp"

#include "strided_read.hpp"

#include <algorithm>

namespace penstock::io {

contiguous_reader::contiguous_reader(read_world& world, std::size_t file, const dataset_description& d,
                                     std::unique_ptr<byte_source> external)
    : world_(world),
      file_(file),
      external_(std::move(external)),
      offset_(external_ ? 0 : d.offset),
      rank_(d.rank),
      value_bytes_(d.value.bytes),
      member_offset_(d.value.offset),
      fill_value_(d.fill_value) {
  extents shape{};
  std::copy(d.info.shape.begin(), d.info.shape.end(), shape.begin());
  strides_ = packed_strides(shape, rank_, d.value.stored_bytes);
}

reader_memory contiguous_reader::memory(std::size_t) const {
  reader_memory m;
  m.scratch.stored_bytes = std::size_t{256} << 10;  // only reads of a part of each row need it
  return m;
}

void contiguous_reader::read(const read_request& request, scratch& s) const {
  const auto& part = request.part;
  if (!offset_) return fill_value_.fill(part.count, part.rank, request.strides, request.out);
  stored_box stored{*offset_ + member_offset_, rank_, part.count, strides_, value_bytes_};
  for (std::size_t k = 0; k < rank_; ++k) stored.offset += part.start[k] * strides_[k];
  const auto file = external_ ? nullptr : world_.open_raw(file_);
  const byte_source& source = external_ ? *external_ : *file;
  merged_reads reads(source, world_.count, s);
  read_stored(stored, request.out, request.strides, s, reads);
  reads.flush();
}

}  // namespace penstock::io
