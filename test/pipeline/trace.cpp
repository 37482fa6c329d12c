#include "small_file.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
namespace data = boost::unit_test::data;
using namespace penstock::literals;
using penstock::test::small_file;

namespace {

const auto every_device = data::make(penstock::test::devices());
const gpu::budget small{.device_bytes = 8_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB};

struct written {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("penstock-trace-" + std::to_string(::getpid()) + ".json");
  ~written() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
  nlohmann::json read() const { return nlohmann::json::parse(std::ifstream(path)); }
};

struct span {
  std::string name;
  int track = 0;
  double begin = 0, end = 0;  ///< microseconds
  std::uint64_t block = 0, rows = 0;
};

std::vector<span> spans_of(const nlohmann::json& trace) {
  std::vector<span> spans;
  for (const auto& event : trace.at("traceEvents"))
    if (event.at("ph") == "X")
      spans.push_back({event.at("name"), event.at("tid"), event.at("ts"),
                       event.at("ts").get<double>() + event.at("dur").get<double>(), event.at("args").at("block"),
                       event.at("args").at("rows")});
  return spans;
}

constexpr double rounding = 1e-3;  // a nanosecond

void check_that_spans_nest(const std::vector<span>& spans) {
  std::map<int, std::vector<span>> open;
  std::map<int, double> last;
  for (const span& s : spans) {
    BOOST_REQUIRE(s.begin >= 0 && s.end >= s.begin);
    BOOST_REQUIRE(s.begin >= last[s.track]);
    last[s.track] = s.begin;
    auto& stack = open[s.track];
    while (!stack.empty() && stack.back().end <= s.begin + rounding) stack.pop_back();
    if (!stack.empty())
      BOOST_TEST(s.end <= stack.back().end + rounding,
                 s.name << " begins within " << stack.back().name << " and ends after it");
    stack.push_back(s);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(traces)

BOOST_DATA_TEST_CASE(every_block_has_its_spans_and_those_of_one_track_nest, every_device* data::make({false, true}),
                     name, shuffle) {
  const small_file file(2000, 64);
  const pp::order_options order =
      shuffle ? pp::order_options(pp::shuffled{.seed = 1, .run_rows = 64, .pool_rows = 512}) : pp::sequential{};
  auto pipeline = (pp::read(file.all(), order) |
                   pp::transform_host({.name = "augment \"twice\"", .concurrency = 2}, [](const pp::block&) {}) |
                   pp::transform_device({.name = "normalise"}, [](const pp::block&) {}) |
                   pp::transport({.block_bytes = 8192, .threads = 2}) | pp::batched({.rows = 100}) | pp::traced())
                      .build(gpu::device::parse(name), small);
  penstock::test::consume(pipeline, 0, 2);
  const written file_of_trace;
  BOOST_TEST(pipeline.write_trace(file_of_trace.path) == 0u);
  const std::vector<span> spans = spans_of(file_of_trace.read());
  check_that_spans_nest(spans);

  std::map<std::string, std::set<std::uint64_t>> blocks;
  std::map<std::string, std::uint64_t> rows;
  for (const span& s : spans) blocks[s.name].insert(s.block), rows[s.name] += s.rows;
  const auto block_count = pipeline.report().stages.front().blocks;
  BOOST_TEST(blocks["read"].size() == block_count);
  BOOST_TEST(rows["read"] == 4000u);
  BOOST_TEST(blocks["augment \"twice\""].size() == block_count);
  for (const char* stage : {"gather", "normalise"}) BOOST_TEST(rows[stage] == 4000u, stage);  // once for each row
  if (name != "host") BOOST_TEST(blocks["copy"].size() == block_count);
  BOOST_TEST(blocks["wait for rows"].size() > 0u);
}

BOOST_AUTO_TEST_CASE(spans_beyond_the_planned_memory_are_dropped_and_counted) {
  const small_file file(2000, 64);
  auto pipeline = (pp::read(file.plain()) | pp::transport({.block_bytes = 8192}) | pp::batched({.rows = 100}) |
                   pp::traced({.bytes = 1000}))
                      .build(gpu::device::host(), small);
  const auto& items = pipeline.plan().ledger.items();
  BOOST_TEST(std::any_of(items.begin(), items.end(), [](const auto& item) {
    return item.name == "pipeline: trace" && item.kind == gpu::memory_kind::host && item.bytes == 1000;
  }));
  penstock::test::consume(pipeline, 0, 1);
  const written file_of_trace;
  const std::uint64_t dropped = pipeline.write_trace(file_of_trace.path);
  const auto trace = file_of_trace.read();
  BOOST_TEST(dropped > 0u);
  BOOST_TEST(trace.at("otherData").at("dropped spans") == std::to_string(dropped));
  BOOST_TEST(spans_of(trace).size() > 0u);
  BOOST_TEST(spans_of(trace).size() <= 1000u / 56);
}

BOOST_AUTO_TEST_CASE(what_is_not_traced_or_cannot_be_written_is_an_error) {
  const small_file file(100);
  auto plain = (pp::read(file.plain()) | pp::batched({.rows = 50})).build(gpu::device::host(), small);
  BOOST_CHECK_THROW(plain.write_trace("trace.json"), std::invalid_argument);
  auto traced = (pp::read(file.plain()) | pp::batched({.rows = 50}) | pp::traced()).build(gpu::device::host(), small);
  BOOST_CHECK_EXCEPTION(traced.write_trace("/no such folder/trace.json"), pp::error, [](const pp::error& e) {
    return std::string(e.what()).find("/no such folder/trace.json") != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(a_trace_takes_names_of_any_bytes) {
  const small_file file(100);
  auto pipeline = (pp::read(file.plain()) | pp::transform_host({.name = "\"caf\xe9\"\n"}, [](const pp::block&) {}) |
                   pp::batched({.rows = 50}) | pp::traced())
                      .build(gpu::device::host(), small);
  penstock::test::consume(pipeline, 0, 1);
  const written file_of_trace;
  pipeline.write_trace(file_of_trace.path);
  const auto spans = spans_of(file_of_trace.read());
  BOOST_TEST(std::any_of(spans.begin(), spans.end(), [](const span& s) { return s.name == "\"caf\\xe9\"\n"; }));
}

BOOST_AUTO_TEST_SUITE_END()
