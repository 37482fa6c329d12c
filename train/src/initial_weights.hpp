#pragma once

#include "network.hpp"

#include <penstock/gpu/stream.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::train {

/// Writes `count` values to `to` through pinned memory: values_from(first, values) gives the next ones. Blocks.
template <class T, class F>
void write_values(gpu::stream_ref stream, std::span<std::byte> staging, T* to, std::size_t count, F values_from) {
  const std::span<T> values(reinterpret_cast<T*>(staging.data()), staging.size() / sizeof(T));
  for (std::size_t first = 0; first < count; first += values.size()) {
    const auto piece = values.first(std::min(values.size(), count - first));
    values_from(first, piece);
    gpu::copy(stream, to + first, piece.data(), piece.size_bytes());
    stream.synchronize();
  }
}

/// Gives every layer the weights that it begins with: a function of seed, layer and element alone. Blocks.
template <class S>
void write_initial_weights(gpu::stream_ref stream, std::span<std::byte> staging, const network<S>& model,
                           std::uint64_t seed) {
  using T = arithmetic<S>;
  T* to = model.parameter_data();
  for (std::size_t n = 0; n < model.layers().size(); ++n) {
    const layer<S>& l = *model.layers()[n];
    const auto shapes = l.parameters();
    for (std::size_t number = 0; number < shapes.size(); ++number) {
      std::size_t elements = 1;
      for (const std::uint64_t extent : shapes[number].shape) elements *= extent;
      write_values(stream, staging, to, elements,
                   [&](std::size_t first, std::span<T> values) { l.initial(number, seed, n, first, values); });
      to += elements;
    }
  }
}

}  // namespace penstock::train
