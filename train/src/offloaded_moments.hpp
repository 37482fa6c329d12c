#pragma once

#include "piece_ring.hpp"
#include "side_streams.hpp"

#include <penstock/gpu/stream.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <vector>

namespace penstock::train {

/// Moments of an optimizer that live in pinned memory and pass through a ring on the device at each update: while a
/// piece is worked on, the next ones arrive and the last ones leave, on streams of their own.
///
/// The copies begin after what the stream was given before an update, and are done before what it is given after it: so
/// who reads the moments in the order of the stream finds them whole. An update is no part of a recorded step: its
/// copies are asked for one by one, so that one which fails is known.
template <class T>
class offloaded_moments {
 public:
  /// Works on elements [first, first + count): moments, each `count` elements, are null where there are fewer.
  using work = std::function<void(std::size_t first, std::size_t count, T* first_moment, T* second_moment)>;

  /// `moments`: one or two arrays of ring.elements in pinned memory. `place`: ring.ring_elements() on the device.
  offloaded_moments(gpu::stream_ref stream, piece_ring ring, std::vector<T*> moments, T* place);

  /// Does `f` for all pieces, on `stream`. Does not block on CUDA.
  void update(const work& f);

 private:
  T* at(std::size_t place, std::size_t array) const noexcept {
    return place_ + (place * moments_.size() + array) * ring_.piece;
  }
  void fetch(std::size_t n);
  void give_back(std::size_t n);

  gpu::stream_ref stream_;
  side_streams beside_;
  piece_ring ring_;
  std::vector<T*> moments_;
  T* place_;
  gpu::event began_, ended_;
  std::vector<gpu::event> arrived_, worked_on_, returned_;  // of each place
};

}  // namespace penstock::train
