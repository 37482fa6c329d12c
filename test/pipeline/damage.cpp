// Rows whose stored bytes are damaged: the run ends, or they are left out, masked and listed.

#include "../support/damaged_chunks.hpp"
#include "damage_log.hpp"
#include "small_file.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

namespace io = penstock::io;
namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
namespace data = boost::unit_test::data;
using namespace penstock::literals;
using penstock::test::fetch;
using penstock::test::small_file;

namespace {

constexpr std::uint64_t file_rows = 700, chunk_rows = 64;
const gpu::budget small{.device_bytes = 8_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB};
const auto every_device = data::make(penstock::test::devices());
const auto orders = data::make(std::vector<int>{0, 1, 2});
const auto filters = data::make(std::vector<std::string>{"gzip", "fletcher32"});

/// A file with damaged chunks of /wide, compressed or with fletcher32.
class damaged_file : public small_file {
 public:
  damaged_file(const std::string& filter, const std::vector<int>& chunks) : small_file(file_rows, chunk_rows, 4) {
    if (filter == "fletcher32")  // Penstock writes none
      penstock::test::run_python(
          "import h5py\nwith h5py.File('" + path().string() +
          "', 'a') as f:\n  d = f['wide'][:]\n  del f['wide']\n  f.create_dataset('wide', data=d, "
          "chunks=(64, 33), fletcher32=True)\n");
    penstock::test::damage_chunks(path(), "/wide", chunks);
  }
};

pp::description read(const pp::source& from, int order, penstock::fault_seam faults = {}) {
  const auto rest = [&](pp::description what) {
    return std::move(what) | std::move(faults) |
           pp::transport(pp::transport_options{.block_bytes = 5000, .threads = 3}) |
           pp::batched({.rows = 48, .last = pp::last_batch::pad});
  };
  if (order == 0) return rest(pp::read(from));
  if (order == 1) return rest(pp::read(from, pp::shuffled{.seed = 3, .run_rows = 20, .pool_rows = 100}));
  return rest(pp::read(from, pp::random{.seed = 3}));
}

/// Rows that an epoch masks, after a check that all others hold their values, and masked and padded ones zeros.
/// `stored`: the row of small_file that is a row of the source.
std::set<std::uint64_t> masked_rows(
    pp::pipeline& from, std::uint64_t epoch,
    const std::function<std::uint64_t(std::uint64_t)>& stored = [](std::uint64_t row) { return row; }) {
  std::set<std::uint64_t> masked;
  for (const pp::batch& batch : from.epochs(epoch, 1)) {
    const auto wide = fetch<float>(batch, "wide"), intact = fetch<float>(batch, "intact");
    const auto ids = batch.row_ids();
    BOOST_REQUIRE(intact.size() == batch.rows());
    for (std::size_t n = 0; n < batch.rows(); ++n) {
      const bool kept = n < ids.size() && intact[n] == 1;
      BOOST_REQUIRE((kept || intact[n] == 0));
      if (n < ids.size() && !kept) masked.insert(ids[n]);
      for (std::size_t column = 0; column < 33; ++column)
        BOOST_REQUIRE(wide[n * 33 + column] == (kept ? static_cast<float>(stored(ids[n]) * 33 + column) : 0.0f));
    }
  }
  return masked;
}

std::set<std::uint64_t> range(std::uint64_t first, std::uint64_t end) {
  std::set<std::uint64_t> all;
  for (; first < end; ++first) all.insert(first);
  return all;
}

/// A file whose /wide is virtual; `mappings` are lines of Python that fill `to` from `source`, of rows of `file`.
class virtual_file {
 public:
  virtual_file(const small_file& file, const std::string& element, const std::vector<std::string>& mappings)
      : path_(file.path().string() + ".virtual") {
    std::string lines;
    for (const std::string& line : mappings) lines += line + "\n";
    penstock::test::run_python("import h5py\nsource = h5py.VirtualSource('" + file.path().string() +
                               "', 'wide', (700, 33))\nto = h5py.VirtualLayout((700, 33), '" + element + "')\n" +
                               lines + "with h5py.File('" + path_.string() +
                               "', 'w') as f:\n  f.create_virtual_dataset('wide', to)\n");
  }
  ~virtual_file() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  virtual_file(const virtual_file&) = delete;
  virtual_file& operator=(const virtual_file&) = delete;

  pp::source from() const {
    return pp::source{}.field("wide", penstock::io::datasets(path_.string(), "/wide"), {.as = penstock::type::float32});
  }

 private:
  std::filesystem::path path_;
};

/// Counts filters that are undone, and reads of files.
struct counting final : penstock::fault_injector {
  penstock::fault before(penstock::fault_site site, std::string_view, std::uint64_t, std::size_t) override {
    if (site == penstock::fault_site::decode) ++decodes;
    if (site == penstock::fault_site::read_file) ++reads;
    return {};
  }
  std::atomic<int> decodes{0}, reads{0};
};

/// Who catches io::error gets what files are to blame for, here by way of its cause.
bool is_of_a_file(const pp::error& e) {
  try {
    std::rethrow_exception(e.cause());
  } catch (const io::error& cause) {
    return cause.context().dataset == "/wide";
  } catch (...) {
    return false;
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(damage)

BOOST_DATA_TEST_CASE(exactly_the_rows_of_damaged_chunks_are_masked_and_listed, every_device* orders* filters, name,
                     order, filter) {
  // The first and the last chunk are among those that opening tries.
  const damaged_file file(filter, {0, 1, 10});
  auto expected = range(0, 2 * chunk_rows);
  expected.merge(range(10 * chunk_rows, file_rows));
  auto pipeline =
      read(file.all().damaged({.policy = pp::damage_policy::skip}), order).build(gpu::device::parse(name), small);
  BOOST_TEST(pipeline.plan().damage_mask == "intact");
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) BOOST_TEST((masked_rows(pipeline, epoch) == expected));

  const auto report = pipeline.report();
  BOOST_TEST(report.damaged_row_count == expected.size());
  BOOST_REQUIRE(report.damaged.size() == 2u);
  const auto& first = report.damaged[0];
  BOOST_TEST(first.field == "wide");
  BOOST_TEST(first.first == 0u);
  BOOST_TEST(first.count == 2 * chunk_rows);
  BOOST_TEST(first.file == file.path().string());
  BOOST_TEST(first.dataset == "/wide");
  BOOST_TEST(first.first_stored == 0u);
  BOOST_TEST(report.damaged[1].first == 10 * chunk_rows);
  BOOST_TEST(report.damaged[1].count == file_rows - 10 * chunk_rows);
  const auto text = to_text(report);
  BOOST_TEST(text.find("damaged rows left out: 188") != std::string::npos, text);
  BOOST_TEST(text.find("rows 0-127") != std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(rows_of_a_virtual_dataset_are_left_out_by_the_chunks_of_its_sources) {
  struct shape {
    std::string what, element;
    std::vector<std::string> mappings;
    std::function<std::uint64_t(std::uint64_t)> stored;
  };
  const auto same = [](std::uint64_t row) { return row; };
  const std::vector<shape> shapes{
      {"whole", "f4", {"to[:] = source"}, same},
      {"two parts",
       "f4",
       {"to[400:] = source[:300]", "to[:400] = source[300:]"},
       [](std::uint64_t row) { return row < 400 ? row + 300 : row - 400; }},
      {"columns apart", "f4", {"to[:, 20:] = source[:, 20:]", "to[:, :20] = source[:, :20]"}, same},
      {"in turns",
       "f4",
       {"to[::2] = source[:350]", "to[1::2] = source[350:]"},
       [](std::uint64_t row) { return row / 2 + row % 2 * 350; }},
      {"by libhdf5", "f8", {"to[:] = source"}, same},
      {"two parts, by libhdf5",
       "f8",
       {"to[400:] = source[:300]", "to[:400] = source[300:]"},
       [](std::uint64_t row) { return row < 400 ? row + 300 : row - 400; }},
      {"columns apart, by libhdf5", "f8", {"to[:, 20:] = source[:, 20:]", "to[:, :20] = source[:, :20]"}, same}};
  for (const auto& [what, element, mappings, stored] : shapes)
    for (const std::vector<int>& chunks : {std::vector<int>{2}, {0, 1, 4, 10}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}})
      BOOST_TEST_CONTEXT(what << ", damaged chunks: " << chunks.size()) {
        const damaged_file file("gzip", chunks);
        const virtual_file shown(file, element, mappings);
        std::set<std::uint64_t> expected;
        for (std::uint64_t row = 0; row < file_rows; ++row)
          if (std::ranges::count(chunks, static_cast<int>(stored(row) / chunk_rows))) expected.insert(row);
        const auto uses = std::make_shared<counting>();
        auto pipeline = (pp::read(shown.from().damaged({.policy = pp::damage_policy::skip})) |
                         penstock::fault_seam(uses) | pp::transport({.block_bytes = 1_MiB}) | pp::batched({.rows = 50}))
                            .build(gpu::device::host(), small);
        BOOST_TEST_REQUIRE(pipeline.plan().block_rows >= file_rows);
        uses->decodes = uses->reads = 0;
        BOOST_TEST((masked_rows(pipeline, 0, stored) == expected));
        BOOST_TEST(pipeline.report().damaged_row_count == expected.size());
        // An epoch of healthy rows undoes two filters of each of eleven chunks. One row after the other it would be 128
        // chunks for each that is damaged, and as many reads.
        BOOST_TEST(uses->decodes <= 3 * 22);
        BOOST_TEST(uses->reads <= 80 + 12 * static_cast<int>(chunks.size()));
      }
}

BOOST_AUTO_TEST_CASE(a_stop_is_answered_amid_rows_that_cannot_be_read) {
  /// No byte of /wide can be read; the fifth read asks for a stop.
  struct bad_disk final : penstock::fault_injector {
    penstock::fault before(penstock::fault_site site, std::string_view, std::uint64_t, std::size_t bytes) override {
      if (site != penstock::fault_site::read_file || !armed || bytes % 132 != 0) return {};
      if (++reads == 5) stop.request_stop();
      return {.error = EIO};
    }
    std::stop_source stop;
    std::atomic<bool> armed{false};
    std::atomic<int> reads{0};
  };
  const small_file file(file_rows);
  const auto disk = std::make_shared<bad_disk>();
  auto pipeline = (pp::read(file.plain().damaged({.policy = pp::damage_policy::skip})) | penstock::fault_seam(disk) |
                   pp::transport({.block_bytes = 1_MiB, .threads = 2}) | pp::batched({.rows = 50}))
                      .build(gpu::device::host(), small);
  BOOST_TEST_REQUIRE(pipeline.plan().block_rows >= file_rows);
  disk->armed = true;
  BOOST_CHECK_THROW(penstock::test::consume(pipeline, 0, 1, {.stop = disk->stop.get_token()}), pp::stopped);
  BOOST_TEST(disk->reads >= 5);
  BOOST_TEST(disk->reads < 20);  // down to single rows it would be more than a thousand
}

BOOST_DATA_TEST_CASE(one_row_beyond_the_limit_is_the_error_as_usual, every_device* orders, name, order) {
  const damaged_file file("gzip", {1, 5});
  const auto device = gpu::device::parse(name);
  const pp::source source = file.all();
  const auto run = [&](pp::damage_options how) {
    auto pipeline = read(pp::source(source).damaged(how), order).build(device, small);
    masked_rows(pipeline, 0);
  };
  BOOST_CHECK_NO_THROW(run({.policy = pp::damage_policy::skip, .limit_rows = 2 * chunk_rows}));
  BOOST_CHECK_EXCEPTION(
      run({.policy = pp::damage_policy::skip, .limit_rows = 2 * chunk_rows - 1}), pp::error, [](const pp::error& e) {
        const std::string text = e.what();
        return e.where().stage == "read" && text.find("/wide") != std::string::npos &&
               text.find("128 rows are damaged") != std::string::npos && text.find("lets 127") != std::string::npos &&
               text.find("--damaged") == std::string::npos && is_of_a_file(e);
      });
}

BOOST_DATA_TEST_CASE(beyond_the_limit_every_further_run_is_an_error_too, orders* data::make({0, 1, 64, 127}), order,
                     limit) {
  const damaged_file file("gzip", {1, 5});
  const pp::damage_options how{.policy = pp::damage_policy::skip, .limit_rows = static_cast<std::uint64_t>(limit)};
  auto pipeline = read(file.all().damaged(how), order).build(gpu::device::host(), small);
  for (std::uint64_t run = 0; run < 3; ++run)
    BOOST_CHECK_EXCEPTION(masked_rows(pipeline, run), pp::error, [&](const pp::error& e) {
      return std::string(e.what()).find("lets " + std::to_string(limit)) != std::string::npos;
    });
}

BOOST_AUTO_TEST_CASE(by_default_damage_ends_the_run_and_there_is_no_mask) {
  const small_file file(file_rows, chunk_rows, 4);
  BOOST_TEST(read(file.all(), 0).build(gpu::device::host(), small).plan().damage_mask.empty());
  penstock::test::damage_chunks(file.path(), "/wide", {1});
  auto pipeline = read(file.all(), 0).build(gpu::device::host(), small);
  BOOST_CHECK_EXCEPTION(for (const pp::batch& batch
                             : pipeline.epochs(0, 1)) BOOST_TEST(batch.valid_rows() > 0u),
                        pp::error, [](const pp::error& e) {
                          return std::string(e.what()).find("--damaged skip:ROWS") != std::string::npos &&
                                 is_of_a_file(e);
                        });
}

BOOST_AUTO_TEST_CASE(host_transforms_see_the_mask_and_may_make_weights_of_it) {
  const damaged_file file("gzip", {4});
  const auto halve = [](const pp::block& block) {
    for (std::size_t n = 0; n < block.rows(); ++n)
      block.output<float>("intact")[n] = block.input<float>("intact")[n] / 2;
  };
  auto pipeline = (read(file.plain().damaged({.policy = pp::damage_policy::skip}), 1) |
                   pp::transform_host({.name = "halve", .outputs = {{"intact", penstock::type::float32, {}}}}, halve))
                      .build(gpu::device::host(), small);
  double sum = 0;
  for (const pp::batch& batch : pipeline.epochs(0, 1))
    for (const float weight : fetch<float>(batch, "intact")) sum += weight;
  BOOST_TEST(sum == static_cast<double>(file_rows - chunk_rows) / 2);
}

BOOST_AUTO_TEST_CASE(without_chunks_it_is_single_rows) {
  /// EIO where row 300 of /label lies, and no memory where row 301 does.
  struct bad_sector final : penstock::fault_injector {
    std::uint64_t at = 0;
    int code = EIO;
    penstock::fault before(penstock::fault_site site, std::string_view, std::uint64_t offset,
                           std::size_t bytes) override {
      const bool hit = site == penstock::fault_site::read_file && at >= offset && at - offset < bytes;
      return {.error = hit ? code : 0};
    }
  };
  const small_file file(file_rows);
  std::ifstream stored(file.path(), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(stored)), std::istreambuf_iterator<char>());
  const std::int32_t neighbours[] = {299, 300, 301};  // nowhere else in a file of float32 and bytes below 251
  const auto found = bytes.find(std::string(reinterpret_cast<const char*>(neighbours), sizeof neighbours));
  BOOST_REQUIRE(found != std::string::npos);
  const auto faults = std::make_shared<bad_sector>();
  faults->at = found + sizeof(std::int32_t);
  auto pipeline = read(file.plain().damaged({.policy = pp::damage_policy::skip, .mask = "ok"}), 0, faults)
                      .build(gpu::device::host(), small);
  for (const pp::batch& batch : pipeline.epochs(0, 1)) {
    const auto ok = fetch<float>(batch, "ok");
    const auto ids = batch.row_ids();
    for (std::size_t n = 0; n < ids.size(); ++n) BOOST_TEST(ok[n] == (ids[n] == 300 ? 0.0f : 1.0f));
  }
  BOOST_TEST(pipeline.report().damaged_row_count == 1u);
  faults->code = EMFILE;  // what may work the next time is no damage
  auto other =
      read(file.plain().damaged({.policy = pp::damage_policy::skip}), 0, faults).build(gpu::device::host(), small);
  BOOST_CHECK_THROW(for (const pp::batch& batch : other.epochs(0, 1)) BOOST_TEST(batch.valid_rows() > 0u), pp::error);
}

BOOST_DATA_TEST_CASE(rows_whose_texts_are_damaged_are_masked_and_listed_one_by_one, every_device, name) {
  const small_file file(file_rows, chunk_rows);
  // Rows 70, 71 and 200 refer to objects of the heap that are not there, in chunks that decode.
  penstock::test::run_python(
      "import h5py, zlib\nwith h5py.File('" + file.path().string() +
      "', 'a') as f:\n  t = h5py.string_dtype()\n  of = f.create_dataset('of', data=['ab'[n % 2] * (n % 2 + 1) for n "
      "in "
      "range(700)], dtype=t, chunks=(100,))\n  d = f.create_dataset('text', (700,), t, chunks=(100,), "
      "compression='gzip')\n  f.flush()\n  for c in range(7):\n    b = bytearray(of.id.read_direct_chunk((c * "
      "100,))[1])\n    for r in (70, 71, 200):\n      if r // 100 == c: b[r % 100 * 16 + 13] ^= 128\n    "
      "d.id.write_direct_chunk((c * 100,), zlib.compress(bytes(b)))\n");
  const auto from = file.plain().field("text", file.at("/text"));
  auto pipeline =
      read(pp::source(from).damaged({.policy = pp::damage_policy::skip}), 0).build(gpu::device::parse(name), small);
  for (const pp::batch& batch : pipeline.epochs(0, 1)) {
    const auto intact = fetch<float>(batch, "intact");
    const auto text = fetch<std::int32_t>(batch, "text");
    const auto ids = batch.row_ids();
    for (std::size_t n = 0; n < ids.size(); ++n) {
      const bool damaged = ids[n] == 70 || ids[n] == 71 || ids[n] == 200;
      BOOST_TEST(intact[n] == (damaged ? 0.0f : 1.0f));
      BOOST_TEST(text[n] == (damaged ? 0 : static_cast<std::int32_t>(ids[n] % 2)));  // of the names a and bb
    }
  }
  const auto report = pipeline.report();
  BOOST_TEST(report.damaged_row_count == 3u);
  BOOST_REQUIRE(report.damaged.size() == 2u);
  BOOST_TEST(report.damaged[0].first == 70u);
  BOOST_TEST(report.damaged[0].count == 2u);
  BOOST_TEST(report.damaged[0].dataset == "/text");
  BOOST_TEST(report.damaged[0].why.find("global heap") != std::string::npos);
  BOOST_TEST(report.damaged[1].first == 200u);

  auto stops = read(from, 0).build(gpu::device::parse(name), small);
  BOOST_CHECK_EXCEPTION(for (const pp::batch& batch
                             : stops.epochs(0, 1)) BOOST_TEST(batch.valid_rows() > 0u),
                        pp::error, [&](const pp::error& e) {
                          const std::string what = e.what();
                          // Of the two damaged blocks, which is read first is not said.
                          const auto names = [&](const char* rows) {
                            return what.find(file.path().string() + ":/text " + rows + ": a text of") !=
                                   std::string::npos;
                          };
                          return (names("rows 70 to 71") || names("row 200")) && what.starts_with("read failed");
                        });
}

BOOST_AUTO_TEST_CASE(a_filter_whose_plugin_is_missing_is_an_error_and_no_row_is_left_out) {
  const small_file file(file_rows, chunk_rows);
  penstock::test::run_python(
      "import h5py\nwith h5py.File('" + file.path().string() +
      "', 'a') as f:\n  d = f['wide'][:]\n  del f['wide']\n  c = h5py.h5p.create(h5py.h5p.DATASET_CREATE)\n  "
      "c.set_chunk((64, 33))\n  c.set_filter(305, h5py.h5z.FLAG_OPTIONAL, ())\n  d = h5py.h5d.create(f.id, b'wide', "
      "h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple(d.shape), c)\n  for n in range(0, 700, 64): "
      "d.write_direct_chunk((n, 0), b'packed by lzo', 0)\n");
  auto pipeline = read(file.all().damaged({.policy = pp::damage_policy::skip}), 0).build(gpu::device::host(), small);
  BOOST_CHECK_EXCEPTION(masked_rows(pipeline, 0), pp::error, [](const pp::error& e) {
    return std::string(e.what()).find("filter 305 (lzo)") != std::string::npos;
  });
  BOOST_TEST(pipeline.report().damaged_row_count == 0u);
}

BOOST_AUTO_TEST_CASE(a_mask_that_cannot_be_is_refused) {
  const small_file file(10);
  using options = pp::damage_options;
  BOOST_CHECK_THROW(file.all().damaged(options{.mask = ""}), std::invalid_argument);
  BOOST_CHECK_THROW(file.all().damaged(options{.as = penstock::type::int32}), std::invalid_argument);
  const auto taken = file.all().damaged(options{.policy = pp::damage_policy::skip, .mask = "label"});
  BOOST_CHECK_THROW(pp::read(taken).open(), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(masks_of_overlapping_parts_are_right_in_every_type) {
  const auto skipped = pp::joined({{8, 4}, {2, 3}, {3, 1}, {12, 1}});
  BOOST_TEST((skipped == std::vector<pp::extent>{{2, 3}, {8, 5}}));
  std::uint8_t bytes[10];
  pp::write_mask({1, 10}, skipped, penstock::type::uint8, reinterpret_cast<std::byte*>(bytes));
  const std::uint8_t expected[] = {1, 0, 0, 0, 1, 1, 1, 0, 0, 0};
  BOOST_TEST(std::memcmp(bytes, expected, sizeof bytes) == 0);
  double doubles[10];
  pp::write_mask({1, 10}, skipped, penstock::type::float64, reinterpret_cast<std::byte*>(doubles));
  for (int n = 0; n < 10; ++n) BOOST_TEST(doubles[n] == static_cast<double>(expected[n]));
}

BOOST_AUTO_TEST_SUITE_END()
