// How fast rows are gathered, on the host and on the first CUDA device. Bytes are those read and written. For CUDA the
// time is the device's, between events around many gathers.
#include <penstock/bytes.hpp>
#include <penstock/gpu/gather.hpp>
#include <penstock/gpu/memory.hpp>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

using namespace penstock;

namespace {

struct rows {
  const char* name;
  type from;
  type to;
  std::uint64_t elements;
  bool drawn;
};

constexpr rows cases[] = {
    {"4KiB", type::float32, type::float32, 1024, false},
    {"4KiB_drawn", type::float32, type::float32, 1024, true},
    {"label", type::int32, type::int32, 1, false},
    {"label_drawn", type::int32, type::int32, 1, true},
    {"784B", type::uint8, type::uint8, 784, false},
    {"784B_drawn", type::uint8, type::uint8, 784, true},
    {"784B_to_float32", type::uint8, type::float32, 784, false},
    {"784B_to_float32_drawn", type::uint8, type::float32, 784, true},
    {"4KiB_to_bfloat16_drawn", type::float32, type::bfloat16, 1024, true},
};

void run(benchmark::State& state, gpu::device device, rows what) {
  const std::size_t row_bytes = what.elements * size_of(what.from);
  const std::uint64_t count = std::clamp<std::uint64_t>(64_MiB / row_bytes, 1, 1 << 20);
  gpu::ledger items;
  items.add(gpu::memory_kind::device, "source", count * row_bytes);
  items.add(gpu::memory_kind::device, "ring", count * what.elements * size_of(what.to));
  const gpu::memory memory(device, items);
  const auto from = memory.at(gpu::memory_kind::device, "source"), to = memory.at(gpu::memory_kind::device, "ring");
  const gpu::stream stream(device);
  fill(stream, from.data(), 1, from.size());
  const gpu::gather_source source{
      .base = from.data(), .image_bytes = from.size(), .image_rows = count, .element = what.from};
  const gpu::gather_target target{.base = to.data(), .rows = count, .element = what.to};
  const auto draw = what.drawn ? gpu::permutation(count, 1) : gpu::permutation::identity();
  gpu::gatherer gather(stream);
  const auto gather_all = [&] { gather(source, target, what.elements, draw, 0, 0, count); };
  gather_all();
  stream.synchronize();

  constexpr int times = 20;
  gpu::event first(device, gpu::event_use::timing), last(device, gpu::event_use::timing);
  for (auto _ : state) {
    if (device.is_host()) {
      gather_all();
      continue;
    }
    first.record(stream);
    for (int n = 0; n < times; ++n) gather_all();
    last.record(stream);
    last.synchronize();
    state.SetIterationTime(milliseconds_between(first, last) / 1000 / times);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(from.size() + to.size()));
}

}  // namespace

int main(int argc, char** argv) {
  for (const gpu::device device : gpu::device::all()) {
    if (device.is_cuda() && device.ordinal() > 0) continue;
    for (const rows& what : cases) {
      auto* registered = benchmark::RegisterBenchmark(fmt::format("gather/{}/{}", device.name(), what.name).c_str(),
                                                      [=](benchmark::State& state) { run(state, device, what); });
      if (device.is_cuda())
        registered->UseManualTime();
      else
        registered->UseRealTime();
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
