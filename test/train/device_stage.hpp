#pragma once

#include "fixture.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

namespace penstock::test {

/// A stage on any device, with copies of rows there.
template <class T>
class device_stage {
 public:
  device_stage(gpu::device device, train::stage_options options, const rows_of<T>& data, std::vector<T> values = {},
               std::vector<T> weights = {})
      : stream_(device),
        options_(std::move(options)),
        ledger_(train::plan(device, options_)),
        memory_([&] {
          gpu::ledger all = ledger_;
          all.add(gpu::memory_kind::device, "x", data.x.size() * sizeof(T));
          all.add(gpu::memory_kind::device, "labels", data.labels.size() * sizeof(std::int32_t));
          all.add(gpu::memory_kind::device, "values", values.size() * sizeof(T));
          all.add(gpu::memory_kind::device, "weights", weights.size() * sizeof(T));
          return std::make_shared<gpu::memory>(device, all);
        }()),
        data_(data),
        stage(stream_, options_, memory_) {
    gpu::copy(stream_, at("x").data(), data.x.data(), data.x.size() * sizeof(T));
    gpu::copy(stream_, at("labels").data(), data.labels.data(), data.labels.size() * sizeof(std::int32_t));
    if (!values.empty()) gpu::copy(stream_, at("values").data(), values.data(), values.size() * sizeof(T));
    if (!weights.empty()) gpu::copy(stream_, at("weights").data(), weights.data(), weights.size() * sizeof(T));
    stream_.synchronize();
  }

  /// All rows with the weights, and the values for targets where there are some.
  train::batch_rows weighted_rows() const {
    const std::size_t rows = at("weights").size() / sizeof(T);
    return {.x = x(0),
            .targets = at(options_.targets == train::target::values ? "values" : "labels").data(),
            .weights = at("weights").data(),
            .rows = rows,
            .valid_rows = rows};
  }
  void accumulate(std::size_t first, std::size_t rows, std::size_t valid) {
    stage.accumulate(x(first), labels(first), rows, valid, first);
  }
  void step(std::size_t first, std::size_t rows, std::size_t valid, double learning_rate) {
    stage.step({.x = x(first), .targets = labels(first), .rows = rows, .valid_rows = valid, .first_row = first},
               learning_rate);
  }
  void evaluate(std::size_t rows) { stage.evaluate(x(0), labels(0), rows, rows); }
  void observe(std::size_t rows) { stage.observe(x(0), rows, rows); }

  std::vector<T> item(const char* name) {
    const auto from = at(name);
    std::vector<T> values(from.size() / sizeof(T));
    gpu::copy(stream_, values.data(), from.data(), from.size());
    stream_.synchronize();
    return values;
  }

 private:
  std::span<std::byte> at(const char* name) const { return memory_->at(gpu::memory_kind::device, name); }
  const T* x(std::size_t row) const { return reinterpret_cast<const T*>(at("x").data()) + row * data_.inputs; }
  const std::int32_t* labels(std::size_t row) const {
    return reinterpret_cast<const std::int32_t*>(at("labels").data()) + row;
  }

  gpu::stream stream_;
  train::stage_options options_;
  gpu::ledger ledger_;
  std::shared_ptr<gpu::memory> memory_;
  const rows_of<T>& data_;

 public:
  train::stage stage;
};

/// The largest distance, against the largest value.
template <class T>
double distance(const std::vector<T>& a, const std::vector<T>& b) {
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    largest = std::max(largest, std::abs(static_cast<double>(a[i])));
  }
  return largest > 0 ? worst / largest : worst;
}

}  // namespace penstock::test
