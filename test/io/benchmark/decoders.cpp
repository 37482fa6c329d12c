#include <penstock/io/file.hpp>

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "benchmarks.hpp"
#include "filters/filter_chain.hpp"

namespace io = penstock::io;

namespace {

struct stored_chunk {
  std::vector<std::byte> bytes;
  std::uint32_t mask = 0;
};

struct stored_dataset {
  std::size_t chunk_bytes = 0;
  std::vector<io::filter> filters;
  std::vector<stored_chunk> chunks;
};

std::shared_ptr<stored_dataset> load(const std::filesystem::path& path, const io::dataset_info& info) {
  auto all = std::make_shared<stored_dataset>();
  all->filters = info.filters;
  all->chunk_bytes = std::accumulate(info.chunk_shape.begin(), info.chunk_shape.end(), std::size_t{4},
                                     [](auto bytes, auto extent) { return bytes * extent; });
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(file, info.path.c_str(), H5P_DEFAULT);
  for (hsize_t row = 0; row < info.shape[0]; row += info.chunk_shape[0]) {
    const std::array<hsize_t, 2> at{row, 0};
    hsize_t bytes = 0;
    stored_chunk chunk;
    if (H5Dget_chunk_storage_size(dataset, at.data(), &bytes) < 0) throw std::runtime_error("a chunk is missing");
    chunk.bytes.resize(bytes);
    H5Dread_chunk(dataset, H5P_DEFAULT, at.data(), &chunk.mask, chunk.bytes.data());
    all->chunks.push_back(std::move(chunk));
  }
  H5Dclose(dataset);
  H5Fclose(file);
  return all;
}

void decode(benchmark::State& state, const stored_dataset& data) {
  const io::filter_chain chain(data.filters, data.chunk_bytes);
  std::size_t largest = 0, stored = 0;
  for (const auto& c : data.chunks) {
    largest = std::max(largest, c.bytes.size());
    stored += c.bytes.size();
  }
  io::decode_workspace workspace(chain.workspace(largest));
  std::vector<std::byte> out(data.chunk_bytes);
  std::size_t n = 0;
  for (auto _ : state) {
    const auto& c = data.chunks[n++ % data.chunks.size()];
    chain.decode(c.bytes, c.mask, out, workspace);
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(data.chunk_bytes));
  state.counters["stored"] = static_cast<double>(stored) / static_cast<double>(data.chunk_bytes * data.chunks.size());
}

void copy(benchmark::State& state) {
  std::vector<std::byte> from(std::size_t{4} << 20, std::byte{1}), to(std::size_t{1} << 20);
  std::size_t n = 0;
  for (auto _ : state) {
    std::memcpy(to.data(), from.data() + (n++ % 4) * to.size(), to.size());
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(to.size()));
}

}  // namespace

void add_decoders(const std::filesystem::path& folder) {
  benchmark::RegisterBenchmark("decode/memcpy", copy);
  const auto path = folder / "chunks.h5";
  const io::file file(path);
  for (const auto& info : file.datasets()) {
    if (!io::why_not_decodable(info.filters, 1).empty()) continue;  // this build has no decoder for it
    const auto data = load(path, info);
    benchmark::RegisterBenchmark(("decode" + info.path).c_str(),
                                 [data](benchmark::State& state) { decode(state, *data); });
  }
}
