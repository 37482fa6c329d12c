#pragma once

#include "dataset_reader.hpp"
#include "describe.hpp"
#include "read_world.hpp"

namespace penstock::io {

/// One H5Dread of `part` to packed memory. Throws failure.
void library_read(hid_t dataset, const dataset_description& description, const box& part, std::byte* out);

/// Reads through libhdf5, in pieces, each under the guard: any dataset that libhdf5 can read.
class library_reader final : public dataset_reader {
 public:
  /// `number` names the dataset in the world's set of open ones; `file_bytes`: of the file where it lies.
  library_reader(read_world& world, std::size_t file, std::size_t number, shared_description description,
                 std::uint64_t file_bytes);

  reader_memory memory(std::size_t row_axis) const override;
  std::uint64_t decoded_rows(std::size_t row_axis) const override { return io::decoded_rows(*description_, row_axis); }
  void read(const read_request& request, scratch& s) const override;

 private:
  void read_part(const library_dataset& open, const box& part, std::byte* out) const;
  void read_dense(const library_dataset& open, const box& part, std::byte* out) const;
  void read_spread(const library_dataset& open, const box& part, const read_request& request, scratch& s) const;
  lost_rows lost_with(const library_dataset& open, const read_request& request) const;
  std::uint64_t cut_point(const box& part, std::size_t axis, bool within_chunks) const noexcept;
  std::size_t axis_to_cut(const box& part, bool within_chunks) const noexcept;
  std::shared_ptr<library_dataset> open() const;

  read_world& world_;
  std::size_t file_, number_;
  shared_description description_;
  std::size_t cache_bytes_ = 0, check_bytes_ = 0;
  long process_ = 0;
};

}  // namespace penstock::io
