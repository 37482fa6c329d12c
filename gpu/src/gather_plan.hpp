#pragma once

#include <penstock/gpu/gather.hpp>

#include <cstddef>
#include <cstdint>

namespace penstock::gpu {

/// a / b where b is not 0. Most row numbers have 32 bits, for which dividing is several times cheaper on a GPU.
PENSTOCK_HOST_DEVICE inline std::uint64_t quotient(std::uint64_t a, std::uint64_t b) noexcept {
  if (((a | b) >> 32) == 0) return static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
  return a / b;
}

/// A checked gather with its row arithmetic, for both backends: row k < count goes from source_row(k) to target_row(k).
struct gather_plan {
  const std::byte* source = nullptr;  // the field's bytes in slot 0
  std::uint64_t image_bytes = 0;
  std::uint64_t image_rows = 1;
  std::uint64_t first_image = 0;  // below `images`
  std::uint64_t images = 1;
  std::uint64_t source_row_bytes = 0;
  std::uint64_t first_source = 0;
  permutation draw;

  std::byte* target = nullptr;
  std::uint64_t target_rows = 1;
  std::uint64_t target_row_bytes = 0;
  std::uint64_t first_target = 0;  // below target_rows

  std::uint64_t count = 0;  // at most target_rows
  std::uint64_t elements = 0;
  type from = type::uint8;
  type to = type::uint8;
  bool swapped = false;
  gather_arithmetic arithmetic;

  /// The bytes stay as they are, but for their order.
  bool is_raw() const noexcept { return from == to && arithmetic.is_plain(); }

  PENSTOCK_HOST_DEVICE const std::byte* source_row(std::uint64_t k) const noexcept {
    const std::uint64_t row = draw(first_source + k);
    const std::uint64_t image = quotient(row, image_rows);
    return source + slot_of(image) * image_bytes + (row - image * image_rows) * source_row_bytes;
  }

  PENSTOCK_HOST_DEVICE std::byte* target_row(std::uint64_t k) const noexcept {
    std::uint64_t row = first_target + k;
    if (row >= target_rows) row -= target_rows;
    return target + row * target_row_bytes;
  }

  PENSTOCK_HOST_DEVICE std::uint64_t slot_of(std::uint64_t image) const noexcept {
    std::uint64_t slot = first_image + image;
    if (slot >= images) slot -= quotient(slot, images) * images;
    return slot;
  }

  /// From row k on, how many rows (at most `most`) follow each other in both memories, where no draw parts them.
  std::uint64_t adjacent_rows(std::uint64_t k, std::uint64_t most) const noexcept {
    const std::uint64_t in_image = image_rows - (first_source + k) % image_rows;
    const std::uint64_t row = first_target + k;
    const std::uint64_t in_ring = row < target_rows ? target_rows - row : 2 * target_rows - row;
    const std::uint64_t least = in_image < in_ring ? in_image : in_ring;
    return least < most ? least : most;
  }
};

/// Whether a kernel converts From to To: the targets that consumers ask for.
template <class From, class To>
inline constexpr bool converts = type_of<To> == type::float32 || type_of<To> == type::float64 ||
                                 type_of<To> == type::float16 || type_of<To> == type::bfloat16 ||
                                 type_of<To> == type::int32 || type_of<To> == type::int64 || type_of<To> == type::uint8;

}  // namespace penstock::gpu
