#pragma once

#include "dataset_reader.hpp"
#include "describe.hpp"
#include "read_world.hpp"

namespace penstock::io {

/// Reads values that lie in one piece of the file, in C order; or fill values where nothing is stored.
class contiguous_reader final : public dataset_reader {
 public:
  /// `external`: where the bytes are, if not at the description's offset in the file.
  contiguous_reader(read_world& world, std::size_t file, const dataset_description& description,
                    std::unique_ptr<byte_source> external = nullptr);

  reader_memory memory(std::size_t row_axis) const override;
  void read(const read_request& request, scratch& s) const override;

 private:
  read_world& world_;
  std::size_t file_;
  std::unique_ptr<byte_source> external_;
  std::optional<std::uint64_t> offset_;
  std::size_t rank_, value_bytes_, member_offset_;
  extents strides_{};
  fill_value fill_value_;
};

}  // namespace penstock::io
