#pragma once

#include <penstock/gpu/permutation.hpp>
#include <penstock/gpu/stream.hpp>
#include <penstock/handle.hpp>
#include <penstock/type.hpp>

#include <cstddef>
#include <cstdint>

namespace penstock::gpu {

/// Rows of one field in block images: image i (image_bytes apart, modulo `images`) holds the rows
/// [i * image_rows, (i + 1) * image_rows) of a window, this field's rows at `offset`, one after another.
/// `base`, `image_bytes` and `offset` are multiples of the element's bytes; multiples of 16 make it fastest.
struct gather_source {
  const std::byte* base = nullptr;
  std::size_t image_bytes = 0;
  std::size_t offset = 0;
  std::uint64_t image_rows = 1;
  std::uint64_t first_image = 0;  ///< the window's image 0 lies at slot first_image
  std::uint64_t images = 1;       ///< slots at `base`, used in turn
  type element = type::uint8;
  bool swapped = false;  ///< in the other byte order
};

/// A row ring: row r of the stream of rows lies at r modulo `rows`. `base` is a multiple of the element's bytes.
struct gather_target {
  std::byte* base = nullptr;
  std::uint64_t rows = 1;
  type element = type::float32;
};

/// What happens to each element between source and target: cast(x) * scale + shift, in float32 (float64 where source or
/// target has 8 bytes, or is an integer of 4), each operation rounded, and the sum cast to the target: whole numbers
/// that are scaled by whole ones are exact in int32, and in int64 up to 2^53. With scale 1 and shift 0 a plain cast:
/// integers to integers keep their low bits; floats to integers truncate, what lies outside becomes the nearest end of
/// the range and NaN becomes 0; floats round to nearest even; integers reach the 16-bit floats through float32
/// (8 bytes: float64). The same type in both places is copied bit for bit. A NaN stays a NaN, of any payload.
struct gather_arithmetic {
  double scale = 1;
  double shift = 0;
  /// Nothing but a cast.
  constexpr bool is_plain() const noexcept { return scale == 1 && shift == 0; }
};

/// Throws std::invalid_argument, with the targets that there are, for a conversion that a gather does not hold. It
/// holds every type to float32, float64, float16, bfloat16, int32, int64 and uint8, and the plain copy of every type to
/// itself. A scale or shift that is not finite is refused.
void check_gather(type from, type to, gather_arithmetic arithmetic = {});

namespace cuda {
struct kernel_graphs;  // of the kernels that were launched so far
}
struct kernel_graphs_traits {
  using native_type = cuda::kernel_graphs*;
  static native_type empty() noexcept { return nullptr; }
  static void release(native_type) noexcept;
};

/// Moves rows from images into a ring, in the order of one stream. On CUDA each gather is launched as a graph of its
/// one kernel: kernels that are launched by themselves slow down the graphs that other streams replay at the same time.
/// On an H100 with CUDA 13 a training step of 20 kernels takes 82 us then, 76 us beside such graphs, and 75 us alone.
/// A stream that is being captured gets the kernel by itself. Not to be used by two threads at once.
class gatherer {
 public:
  /// `stream` must outlive what is issued to it.
  explicit gatherer(stream_ref stream) noexcept : stream_(stream) {}

  /// target row (first_target + k) = convert(source row draw(first_source + k)) for k < count; `elements` a row.
  /// In the order of the stream; does not block. A kernel of a kind (element types, alignment) that was not launched
  /// before is prepared first, which takes memory of the driver's; nothing else is allocated. Host: on the caller's TBB
  /// arena, done when the call returns. The same bits on both devices. Throws std::invalid_argument for what
  /// check_gather() refuses, for count > target.rows, for indices that `draw` does not take, and for addresses that are
  /// not multiples of their element's bytes. Faults: the seam of the stream is asked for "cudaGraphLaunch", on CUDA for
  /// the calls before it, too, and in a capture for "cudaLaunchKernel".
  void operator()(const gather_source& source, const gather_target& target, std::uint64_t elements,
                  const permutation& draw, std::uint64_t first_source, std::uint64_t first_target, std::uint64_t count,
                  gather_arithmetic arithmetic = {});

 private:
  stream_ref stream_;
  handle<kernel_graphs_traits> graphs_;
};

}  // namespace penstock::gpu
