#pragma once

#include "dataset_reader.hpp"
#include "describe.hpp"
#include "read_world.hpp"

namespace penstock::io {

/// Gives values from memory into which libhdf5 read the whole dataset once.
class staged_reader final : public dataset_reader {
 public:
  /// Reads `dataset` through libhdf5. Throws failure.
  staged_reader(read_world& world, hid_t dataset, const dataset_description& description);

  reader_memory memory(std::size_t row_axis) const override;
  void read(const read_request& request, scratch& s) const override;

 private:
  std::size_t rank_, value_bytes_;
  extents strides_{};
  std::vector<std::byte> values_;
};

}  // namespace penstock::io
