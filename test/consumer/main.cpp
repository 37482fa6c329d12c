// Writes a file, streams it back and adds it up: one use of each module through its installed headers.

#include <penstock/config.hpp>
#include <penstock/io/writer.hpp>
#include <penstock/pipeline/description.hpp>
#include <penstock/train/stage.hpp>

#include <cstdint>
#include <iostream>
#include <numeric>
#include <span>
#include <vector>

namespace ps = penstock;
using namespace ps::literals;

void write_numbers(const char* path, std::uint64_t rows) {
  std::vector<std::int32_t> numbers(rows);
  std::iota(numbers.begin(), numbers.end(), 0);
  ps::io::writer writer(path);
  writer.create("/numbers", ps::type::int32, {rows}, {.chunk_shape = {100}});
  writer.write_rows("/numbers", 0, rows, std::as_bytes(std::span(numbers)));
  writer.commit();
}

std::int64_t sum_of(const char* path) {
  const auto source = ps::pipeline::source{}.field("number", ps::io::datasets(path, "/numbers"));
  auto pipeline =
      (ps::pipeline::read(source, ps::pipeline::shuffled{.seed = 1}) | ps::pipeline::batch_options{.rows = 64})
          .build(ps::gpu::device::host(), {.device_bytes = 16_MiB, .pinned_bytes = 16_MiB});
  std::int64_t sum = 0;
  for (auto& batch : pipeline.epochs(0, 1)) {
    const auto* numbers = batch.field<std::int32_t>("number");
    sum = std::accumulate(numbers, numbers + batch.rows(), sum);
  }
  return sum;
}

/// Bytes of device memory that a small model takes.
std::size_t model_bytes() {
  const ps::train::stage_options options{.model = {.inputs = 4, .hidden = {8}, .outputs = 2}, .rows = 64};
  return ps::train::plan(ps::gpu::device::host(), options).total(ps::gpu::memory_kind::device);
}

int main(int, char** arguments) {
  constexpr std::int64_t rows = 1000;
  write_numbers(arguments[1], rows);
  const auto sum = sum_of(arguments[1]);
  std::cout << "Penstock " << PENSTOCK_VERSION << " on " << ps::gpu::device::best().description() << ": sum " << sum
            << ", a model of " << ps::format_bytes(model_bytes()) << '\n';
  return sum == rows * (rows - 1) / 2 && model_bytes() > 0 ? 0 : 1;
}
