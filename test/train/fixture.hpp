#pragma once

#include <penstock/gpu/memory.hpp>
#include <penstock/train/stage.hpp>

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <vector>

namespace penstock::test {

/// Rows of a made-up classification task, on the host.
template <class T>
struct rows_of {
  std::vector<T> x;
  std::vector<std::int32_t> labels;
  std::size_t inputs = 0;

  rows_of(std::size_t rows, std::size_t width, std::size_t classes, unsigned seed = 1)
      : x(rows * width), labels(rows), inputs(width) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    for (auto& value : x) value = static_cast<T>(normal(random));
    for (auto& label : labels) label = static_cast<std::int32_t>(random() % classes);
  }
  const T* row(std::size_t n) const { return x.data() + n * inputs; }
};

/// A stage on the host with memory of its own.
template <class T>
struct host_stage {
  train::stage_options options;
  std::shared_ptr<gpu::memory> memory;
  train::stage stage;

  explicit host_stage(train::stage_options o)
      : options([&] {
          o.compute = type_of<T>;
          return o;
        }()),
        memory(std::make_shared<gpu::memory>(gpu::device::host(), train::plan(gpu::device::host(), options))),
        stage(gpu::stream_ref{}, options, memory) {}

  std::span<T> item(const char* name) const {
    const auto bytes = memory->at(gpu::memory_kind::device, name);
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  std::span<T> parameters() const { return item("train: parameters").first(train::parameters(options.model)); }
  std::span<T> gradients() const { return item("train: gradients").first(train::parameters(options.model)); }

  /// Forward and backward over rows [first, first + count) of `data`.
  void accumulate(const rows_of<T>& data, std::size_t first, std::size_t count) {
    stage.accumulate(data.row(first), data.labels.data() + first, count, count, first);
  }
  double loss_sum(const rows_of<T>& data, std::size_t count) {
    stage.reset();
    stage.evaluate(data.x.data(), data.labels.data(), count, count);
    return stage.progress().running.loss_sum;
  }
};

template <class T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}
template <class T>
std::vector<T> copy_of(std::span<T> values) {
  return {values.begin(), values.end()};
}

}  // namespace penstock::test
