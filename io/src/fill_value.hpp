#pragma once

#include "box.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace penstock::io {

/// What values that were never written read as. Copies share it; zeros take no memory, however long a value is.
class fill_value {
 public:
  using bytes = std::vector<std::byte>;

  /// Zeros.
  explicit fill_value(std::size_t value_bytes = 0) : value_bytes_(value_bytes) {}
  /// One value as it is read.
  explicit fill_value(bytes value) : value_bytes_(value.size()) {
    if (std::any_of(value.begin(), value.end(), [](std::byte b) { return b != std::byte{}; }))
      value_ = std::make_shared<const bytes>(std::move(value));
  }

  /// Fills a box of values, strided in `target`.
  void fill(const extents& count, std::size_t rank, const extents& target_strides, std::byte* target) const noexcept {
    if (value_)
      fill_box(count, rank, target_strides, *value_, target);
    else
      zero_box(count, rank, target_strides, value_bytes_, target);
  }

  /// The value; null: zeros.
  const bytes* stored() const noexcept { return value_.get(); }

 private:
  std::size_t value_bytes_;
  std::shared_ptr<const bytes> value_;  // null: zeros
};

}  // namespace penstock::io
