#include "staged_reader.hpp"

#include "ask_for_memory.hpp"
#include "read_driver.hpp"

#include <algorithm>

namespace penstock::io {

staged_reader::staged_reader(read_world& world, hid_t dataset, const dataset_description& d)
    : rank_(d.rank), value_bytes_(d.value.bytes) {
  ask_for_memory(world.faults, memory_items::staged, d.values() * d.value.bytes);
  values_.resize(d.values() * d.value.bytes);
  extents shape{};
  std::copy(d.info.shape.begin(), d.info.shape.end(), shape.begin());
  strides_ = packed_strides(shape, rank_, value_bytes_);
  if (values_.empty()) return;
  const stopwatch watch(world.count.lock_nanoseconds);
  const library_guard guard;
  take_driver_error();
  checked(H5Dread(dataset, d.value.memory.native(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values_.data()),
          "libhdf5 cannot read it");
  refuse_unopened_sources();
  world.count.locked_bytes.fetch_add(values_.size(), std::memory_order_relaxed);
}

reader_memory staged_reader::memory(std::size_t) const {
  reader_memory m;
  m.staged_bytes = values_.size();
  return m;
}

void staged_reader::read(const read_request& request, scratch&) const {
  const auto& part = request.part;
  const std::byte* from = values_.data();
  for (std::size_t k = 0; k < rank_; ++k) from += part.start[k] * strides_[k];
  copy_runs(plan_runs(part.count, part.rank, strides_, request.strides, value_bytes_), from, request.out);
}

}  // namespace penstock::io
