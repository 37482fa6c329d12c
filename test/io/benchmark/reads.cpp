#include <penstock/io/row_reader.hpp>

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <hdf5.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks.hpp"

namespace io = penstock::io;

namespace {

constexpr std::uint64_t block_rows = 256;  // 1 MiB of float32

struct read_case {
  const char* dataset;
  const char* name;
  io::value_options values{};
};

void read_rows(benchmark::State& state, const std::filesystem::path& path, const read_case& what, std::size_t threads) {
  io::row_reader reader({{.file = path, .dataset = what.dataset}}, {.values = what.values});
  reader.reserve({.concurrency = threads});
  const std::size_t block_bytes = block_rows * reader.row_bytes();
  std::vector<std::vector<std::byte>> blocks(threads, std::vector<std::byte>(2 * block_bytes));
  for (auto _ : state) {
    std::atomic<std::uint64_t> next{0};
    const auto work = [&](std::vector<std::byte>& to) {
      for (std::size_t n = 0;; ++n) {
        const auto first = next.fetch_add(block_rows);
        if (first >= reader.rows()) return;
        reader.read(first, block_rows, {to.data() + n % 2 * block_bytes, block_bytes});
      }
    };
    std::vector<std::thread> others;
    for (std::size_t t = 1; t < threads; ++t) others.emplace_back([&, t] { work(blocks[t]); });
    work(blocks[0]);
    for (auto& t : others) t.join();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(reader.rows() * reader.row_bytes()));
}

void read_with_libhdf5(benchmark::State& state, const std::filesystem::path& path, const std::string& name) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(file, name.c_str(), H5P_DEFAULT), space = H5Dget_space(dataset);
  std::array<hsize_t, 2> shape{};
  H5Sget_simple_extent_dims(space, shape.data(), nullptr);
  const std::array<hsize_t, 2> count{block_rows, shape[1]};
  const hid_t memory = H5Screate_simple(2, count.data(), nullptr);
  std::vector<float> out(block_rows * shape[1]);
  for (auto _ : state)
    for (hsize_t row = 0; row < shape[0]; row += block_rows) {
      const std::array<hsize_t, 2> start{row, 0};
      H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
      if (H5Dread(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, out.data()) < 0)
        return state.SkipWithError("H5Dread failed");
    }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(shape[0] * shape[1] * sizeof(float)));
  H5Sclose(memory);
  H5Sclose(space);
  H5Dclose(dataset);
  H5Fclose(file);
}

}  // namespace

void add_reads(const std::filesystem::path& folder) {
  const auto path = folder / "rows.h5";
  const read_case cases[] = {{"/contiguous", "contiguous"},
                             {"/chunked", "chunked"},
                             {"/split", "split"},
                             {"/big_endian", "big_endian", {.native_order = true}},
                             {"/float16", "float16_to_float32", {.as = penstock::type::float32}},
                             {"/gzip4", "gzip4"},
                             {"/gzip4_split", "gzip4_split"}};
  for (const auto& what : cases) {
    for (const std::size_t threads : {1u, 2u})
      benchmark::RegisterBenchmark(fmt::format("read/{}/threads:{}", what.name, threads).c_str(),
                                   [=](benchmark::State& state) { read_rows(state, path, what, threads); })
          ->UseRealTime();
    benchmark::RegisterBenchmark(fmt::format("read/{}/H5Dread", what.name).c_str(), [=](benchmark::State& state) {
      read_with_libhdf5(state, path, what.dataset);
    })->UseRealTime();
  }
}
