// How many readers there are, and how often they decode a chunk.

#include "../support/damaged_chunks.hpp"
#include "small_file.hpp"

#include <penstock/gpu/device.hpp>
#include <penstock/gpu/ledger.hpp>
#include <penstock/io/error.hpp>
#include <penstock/io/writer.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace io = penstock::io;
namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
namespace data = boost::unit_test::data;
using namespace penstock::literals;
using penstock::test::consume;
using penstock::test::small_file;

namespace {

const auto every_device = data::make(penstock::test::devices());
const auto orders = data::make(std::vector<std::string>{"sequential", "shuffled"});

pp::order_options order_named(const std::string& name) {
  if (name == "sequential") return pp::sequential{};
  return pp::shuffled{.seed = 3};
}

/// A dataset of float32 whose chunks of 100 x 8 values split its rows of 60; row r holds r * 60 and so on.
class split_file {
 public:
  static constexpr std::uint64_t rows = 2050, columns = 60, chunk_rows = 100, chunk_columns = 8;

  split_file() {
    penstock::test::run_python("import h5py, numpy\nwith h5py.File('" + path_.string() +
                               "', 'w') as f:\n  f.create_dataset('x', data=numpy.arange(2050 * 60, "
                               "dtype='f4').reshape(2050, 60), chunks=(100, 8), compression='gzip', shuffle=True)\n");
  }
  ~split_file() { std::filesystem::remove(path_); }
  split_file(const split_file&) = delete;
  split_file& operator=(const split_file&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("penstock-split-" + std::to_string(::getpid()) + ".h5");
};

/// A dataset of float32, 600 columns, in chunks of 9000 x 16: 21.6 MB lie side by side.
class tall_file {
 public:
  static constexpr std::uint64_t chunk_rows = 9000, chunk_columns = 16;

  tall_file() {
    penstock::test::run_python("import h5py, numpy\nwith h5py.File('" + path_.string() +
                               "', 'w') as f:\n  f.create_dataset('x', data=numpy.arange(27000 * 600, "
                               "dtype='f4').reshape(27000, 600), chunks=(9000, 16), compression='gzip', "
                               "compression_opts=1, shuffle=True)\n");
  }
  ~tall_file() { std::filesystem::remove(path_); }
  tall_file(const tall_file&) = delete;
  tall_file& operator=(const tall_file&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("penstock-tall-" + std::to_string(::getpid()) + ".h5");
};

/// A virtual dataset of four sources of 1000 rows in chunks of 100; value n of 4000 x 60 is n.
class virtual_file {
 public:
  virtual_file() {
    std::filesystem::create_directories(folder_);
    penstock::test::run_python(
        "import h5py, numpy\na = numpy.arange(240000, dtype='f4').reshape(4000, 60)\nl = h5py.VirtualLayout(a.shape, "
        "'f4')\nfor n in range(4):\n  with h5py.File('" +
        folder_.string() +
        "/source%d.h5' % n, 'w') as f:\n    f.create_dataset('x', data=a[1000 * n : 1000 * n + 1000], chunks=(100, "
        "60), "
        "compression='gzip')\n  l[1000 * n : 1000 * n + 1000] = h5py.VirtualSource('source%d.h5' % n, 'x', (1000, "
        "60))\nwith h5py.File('" +
        path().string() + "', 'w') as f:\n  f.create_virtual_dataset('x', l, fillvalue=-1)\n");
  }
  ~virtual_file() { std::filesystem::remove_all(folder_); }
  virtual_file(const virtual_file&) = delete;
  virtual_file& operator=(const virtual_file&) = delete;

  std::filesystem::path path() const { return folder_ / "virtual.h5"; }
  std::filesystem::path source(int n) const { return folder_ / ("source" + std::to_string(n) + ".h5"); }

 private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("penstock-virtual-" + std::to_string(::getpid()));
};

}  // namespace

BOOST_AUTO_TEST_SUITE(decoding)

BOOST_DATA_TEST_CASE(each_chunk_is_decoded_once_in_an_epoch, every_device* orders, name, order) {
  const small_file file(3001, 64, 4);  // chunks of 64 rows of /wide, 42 of /image; none of /label
  auto pipeline = (pp::read(file.all(), order_named(order)) | pp::batched({.rows = 48}))
                      .build(gpu::device::parse(name), {.device_bytes = 8_MiB, .pinned_bytes = 8_MiB});
  const std::uint64_t all = 47 * 64 * 33 * 4 + 72 * 42 * 12;
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    consume(pipeline, epoch, 1);
    const auto decoded = pipeline.report().reading.decoded_bytes;
    if (epoch == 0) BOOST_TEST(decoded == all);
    BOOST_TEST(decoded <= all * (epoch + 1));  // what one epoch cut last may still be there for the next
  }
}

BOOST_DATA_TEST_CASE(each_chunk_that_splits_rows_is_decoded_once_in_an_epoch, every_device* orders* data::make({1, 3}),
                     name, order, threads) {
  const split_file file;
  auto pipeline = (pp::read(pp::source{}.field("x", io::datasets(file.path().string(), "/x")), order_named(order)) |
                   pp::batched({.rows = 70}) | pp::transport({.threads = static_cast<std::size_t>(threads)}))
                      .build(gpu::device::parse(name), {.device_bytes = 8_MiB, .pinned_bytes = 8_MiB});
  std::vector<bool> seen(split_file::rows, false);
  pipeline.run(0, 1, [&](pp::batch& batch) {
    const auto values = penstock::test::fetch<float>(batch, "x");
    for (std::size_t row = 0; row < batch.rows(); ++row) {
      const auto first = values[row * split_file::columns];
      for (std::size_t c = 0; c < split_file::columns; ++c)
        if (values[row * split_file::columns + c] != first + static_cast<float>(c)) BOOST_FAIL("wrong values");
      seen[static_cast<std::size_t>(first) / split_file::columns] = true;
    }
  });
  BOOST_TEST(std::count(seen.begin(), seen.end(), true) == static_cast<std::ptrdiff_t>(split_file::rows));
  constexpr std::uint64_t chunks = 21 * 8, chunk_bytes = split_file::chunk_rows * split_file::chunk_columns * 4;
  BOOST_TEST(pipeline.report().reading.decoded_bytes == chunks * chunk_bytes);
}

BOOST_DATA_TEST_CASE(chunks_taller_than_4_MiB_are_decoded_once_also_under_shuffling, every_device* orders, name,
                     order) {
  const tall_file file;
  auto pipeline = (pp::read(pp::source{}.field("x", io::datasets(file.path().string(), "/x")), order_named(order)) |
                   pp::batched({.rows = 500}) | pp::transport({.threads = 2}))
                      .build(gpu::device::parse(name), {.device_bytes = 128_MiB, .pinned_bytes = 64_MiB});
  pipeline.run(0, 1, [](pp::batch&) {});
  constexpr std::uint64_t chunks = 3 * 38, chunk_bytes = tall_file::chunk_rows * tall_file::chunk_columns * 4;
  BOOST_TEST(pipeline.report().reading.decoded_bytes == chunks * chunk_bytes);
  if (order == "sequential") return;
  BOOST_CHECK_EXCEPTION(pp::read(pp::source{}.field("x", io::datasets(file.path().string(), "/x")), order_named(order))
                            .build(gpu::device::parse(name), {.device_bytes = 8_MiB, .pinned_bytes = 64_MiB}),
                        gpu::budget_error,
                        [](const auto& e) { return std::string(e.what()).find("run_rows") != std::string::npos; });
}

BOOST_DATA_TEST_CASE(chunks_of_a_virtual_datasets_sources_are_decoded_once, every_device* orders, name, order) {
  const virtual_file file;
  auto pipeline = (pp::read(pp::source{}.field("x", io::datasets(file.path().string(), "/x")), order_named(order)) |
                   pp::batched({.rows = 64}))
                      .build(gpu::device::parse(name), {.device_bytes = 16_MiB, .pinned_bytes = 8_MiB});
  std::uint64_t sum = 0;
  pipeline.run(0, 1, [&](pp::batch& batch) {
    for (const float value : penstock::test::fetch<float>(batch, "x")) sum += static_cast<std::uint64_t>(value);
  });
  constexpr std::uint64_t values = 4 * 1000 * 60;
  BOOST_TEST(sum == values * (values - 1) / 2);
  BOOST_TEST(pipeline.report().reading.decoded_bytes == values * 4);
}

// Promise: the order is the source's, whatever decoders a build or libhdf5's plugins have.
BOOST_AUTO_TEST_CASE(default_runs_do_not_depend_on_who_decodes) {
  const auto path =
      std::filesystem::temp_directory_path() / ("penstock-decoders-" + std::to_string(::getpid()) + ".h5");
  penstock::test::run_python(
      "import h5py, numpy\nx = numpy.arange(2000, dtype='i4').repeat(1024).reshape(2000, 1024)\nwith h5py.File('" +
      path.string() +
      "', 'w') as f:\n  for name, how in (('here', {'compression': 'gzip', 'compression_opts': 1}), ('libhdf5', "
      "{'scaleoffset': 0})):\n    f.create_dataset(name + '/x', data=x, chunks=(256, 1024), **how)\n    "
      "f.create_dataset(name + '/label', data=x[:, 0], chunks=(1000,), **how)\n");
  for (const std::string group : {"/here", "/libhdf5"}) BOOST_TEST_CONTEXT(group) {
      const auto opened = pp::read(pp::source{}
                                       .field("x", io::datasets(path.string(), group + "/x"))
                                       .field("label", io::datasets(path.string(), group + "/label")),
                                   pp::shuffled{.seed = 3})
                              .open();
      // Three chunks of x: runs of 1000 rows would decode a quarter of x again and more.
      BOOST_TEST(opened.row_order().run_rows() == 768u);
      BOOST_TEST(
          opened.plan(gpu::device::host(), {}).field_reports.front().find(group == "/here" ? "direct" : "locked") !=
          std::string::npos);
    }
  std::filesystem::remove(path);
}

BOOST_AUTO_TEST_CASE(default_runs_do_not_depend_on_who_finds_a_virtual_datasets_sources) {
  const virtual_file file;
  const auto run_rows = [&] {
    return pp::read(pp::source{}.field("x", io::datasets(file.path().string(), "/x")), pp::shuffled{.seed = 3})
        .open()
        .row_order()
        .run_rows();
  };
  BOOST_TEST(run_rows() == 1100u);  // 256 KiB of rows of 240 bytes are 1092: eleven chunks
  ::setenv("HDF5_VDS_PREFIX", file.path().parent_path().c_str(), 1);
  BOOST_TEST(run_rows() == 1100u);
  ::unsetenv("HDF5_VDS_PREFIX");
}

BOOST_AUTO_TEST_CASE(sources_of_a_virtual_dataset_that_are_missing_are_refused_unless_allowed) {
  const virtual_file file;
  std::filesystem::remove(file.source(2));
  const auto open = [&](bool allow) {
    const auto from =
        pp::source{}.field("x", io::datasets(file.path().string(), "/x"), {.allow_missing_sources = allow});
    return (pp::read(from) | pp::batched({.rows = 64})).build(gpu::device::host(), {});
  };
  BOOST_CHECK_EXCEPTION(open(false), io::error, [&](const io::error& e) {
    return std::string(e.what()).find(file.source(2).filename().string()) != std::string::npos;
  });
  std::size_t rows = 0, filled = 0;
  open(true).run(0, 1, [&](pp::batch& batch) {
    const auto values = penstock::test::fetch<float>(batch, "x");
    rows += batch.rows();
    filled += static_cast<std::size_t>(std::count(values.begin(), values.end(), -1.0f));
  });
  BOOST_TEST(rows == 4000u);
  BOOST_TEST(filled == 1000u * 60);
}

BOOST_AUTO_TEST_CASE(the_chunk_index_is_in_the_ledger) {
  const split_file file;
  const auto plan =
      (pp::read(pp::source{}.field("x", io::datasets(file.path().string(), "/x"))) | pp::batched({.rows = 70}))
          .open()
          .plan(gpu::device::host(), {});
  std::size_t bytes = 0;
  for (const auto& item : plan.ledger.items())
    if (item.name == "io: chunk index of x") bytes += item.bytes;
  BOOST_TEST(bytes == 16u * 21 * 8);
}

// 4096 rows in 64 chunks of 64: what is decoded, if every chunk is once, is as much as there is.
BOOST_DATA_TEST_CASE(a_block_decodes_a_chunk_once_for_all_of_its_rows, every_device, name) {
  const small_file file(4096, 64, 1);
  const std::uint64_t all = 4096 * 33 * 4;
  const auto decoded = [&](const pp::order_options& how, std::size_t block_bytes) {
    auto pipeline =
        (pp::read(pp::source{}.field("wide", file.at("/wide")), how) | pp::batched({.rows = 48}) |
         pp::transport(pp::transport_options{.block_bytes = block_bytes, .threads = 2}))
            .build(gpu::device::parse(name), {.device_bytes = 64_MiB, .pinned_bytes = 16_MiB, .host_bytes = 64_MiB});
    BOOST_TEST(consume(pipeline, 0, 1).size() == 4096u);  // checks values, too
    return pipeline.report().reading.decoded_bytes;
  };
  // The block that is chosen holds the epoch.
  BOOST_TEST(decoded(pp::random{1}, 0) == all);
  BOOST_TEST(decoded(pp::weighted{.seed = 1, .weights = std::vector<double>(4096, 1)}, 0) <= all);
  // Eight blocks of 512 rows, each with rows of every chunk, and a few again where one of two readers has to wait for
  // a processor; row by row it would be 64 times as much, but for what the readers' chunks save.
  BOOST_TEST(decoded(pp::random{1}, 512 * 33 * 4) < 9 * all);
  // Runs of a quarter chunk: a block of a window of 512 rows has each of the chunks' quarters once.
  BOOST_TEST(decoded(pp::shuffled{.seed = 1, .run_rows = 16, .pool_rows = 512}, 512 * 33 * 4) <= 4 * all);
}

// Rows of 64 KiB, of which 16 MiB hold one of each of the chunks of 64, whatever dataset comes first.
BOOST_AUTO_TEST_CASE(so_it_does_where_another_file_with_other_chunks_comes_first) {
  const auto folder = std::filesystem::temp_directory_path() / ("penstock-joined-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const auto write = [&](const char* name, std::uint64_t rows, io::create_options how) {
    io::writer to(folder / name);
    to.create("/x", penstock::type::float32, {rows, 16384}, how);
    to.commit();
    return io::location{folder / name, "/x"};
  };
  const auto tall = write("tall.h5", 512, {.chunk_shape = {64, 16384}, .deflate_level = 1});
  const auto whole = write("whole.h5", 8, {});
  const auto block_rows = [](std::vector<io::location> files) {
    return (pp::read(pp::source{}.field("x", std::move(files)), pp::random{1}) | pp::batched({.rows = 48}))
        .open()
        .plan(gpu::device::host(), {})
        .block_rows;
  };
  BOOST_TEST(block_rows({tall}) == 256u);
  BOOST_TEST(block_rows({whole, tall}) == 256u);
  BOOST_TEST(block_rows({tall, whole}) == 256u);
  BOOST_TEST(block_rows({whole}) < 256u);
  std::filesystem::remove_all(folder);
}

BOOST_DATA_TEST_CASE(readers_that_wait_for_a_disk_are_twice_the_processors, every_device, name) {
  const small_file plain(3001, 64), packed(3001, 64, 4);
  const auto field = [](const small_file& file, bool around) {
    return pp::source{}.field("wide", file.at("/wide"), {.around_page_cache = around});
  };
  const auto device = gpu::device::parse(name);
  const auto threads = [&](pp::source from) {
    return (pp::read(std::move(from)) | pp::batched({.rows = 48})).open().plan(device, {}).threads;
  };
  const auto twice = std::min<std::size_t>(2 * gpu::processors(), 64);
  BOOST_TEST(threads(field(plain, true)) >= twice);
  BOOST_TEST(threads(field(plain, false)) <= gpu::processors());
  BOOST_TEST(threads(field(packed, true)) == gpu::processors());  // decoding takes processors
  auto pipeline = (pp::read(field(plain, true)) | pp::batched({.rows = 48})).build(device, {});
  pipeline.run(0, 1, [](pp::batch&) {});
  const auto report = pipeline.report();
  BOOST_TEST(report.stages.front().name == "read");
  BOOST_TEST(report.stages.front().workers >= twice);
}

BOOST_AUTO_TEST_SUITE_END()
