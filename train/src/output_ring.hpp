#pragma once

#include "side_streams.hpp"

#include <penstock/gpu/stream.hpp>

#include <cstddef>
#include <vector>

namespace penstock::train {

/// Which of the outputs that backward needs stay on the device: they are written one after another and read in the
/// opposite order, and output k has place k % places. The last ones are still there when backward begins; those before
/// them wait in pinned memory. Pure.
struct output_places {
  std::size_t outputs = 0;

  /// Backward works on one output and the one before it, while a third arrives.
  static constexpr std::size_t places = 3;
  static std::size_t place(std::size_t k) noexcept { return k % places; }
  /// Outputs [0, moved()) are copied to pinned memory and back.
  std::size_t moved() const noexcept { return outputs > places ? outputs - places : 0; }
};

/// Outputs of a pass in a ring on the device: forward copies them out behind the compute, backward copies them in ahead
/// of it, on streams of their own. All of a pass's copies lie between its first and last work on the stream that
/// computes, so that a pass can be recorded as a graph. Nothing blocks on CUDA.
class output_ring {
 public:
  struct output {
    std::byte* on_device = nullptr;  ///< shared with the others of its place
    std::byte* on_host = nullptr;    ///< pinned; null where it is not moved
    std::size_t row_bytes = 0;
  };

  output_ring(gpu::stream_ref stream, std::vector<output> outputs);

  /// Before output k is written, in the order of 0, 1, ...
  void before_writing(std::size_t k);
  void written(std::size_t k, std::size_t rows);
  /// Before the first work of backward that reads output k.
  void before_reading(std::size_t k);
  /// After the last work of backward that reads output k.
  void done_with(std::size_t k, std::size_t rows);

 private:
  bool moved(std::size_t k) const noexcept { return k < places_.moved(); }

  gpu::stream_ref stream_;
  side_streams beside_;
  std::vector<output> outputs_;
  output_places places_;
  std::vector<gpu::event> written_, left_, done_, arrived_;  // of each place
};

}  // namespace penstock::train
