#include "small_file.hpp"

#include "../support/gpu.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <penstock/fault.hpp>
#include <penstock/io/writer.hpp>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <thread>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
namespace data = boost::unit_test::data;
using namespace penstock::literals;
using penstock::test::small_file;

namespace {

const auto every_device = data::make(penstock::test::devices());
const gpu::budget small{.device_bytes = 8_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB};
constexpr std::chrono::milliseconds delay{4};

/// Every use of one site takes longer; for CUDA calls, of those with one name.
class slow : public penstock::fault_injector {
 public:
  slow(penstock::fault_site site, std::string call) : site_(site), call_(std::move(call)) {}
  penstock::fault before(penstock::fault_site site, std::string_view what, std::uint64_t, std::size_t) override {
    if (!on || site != site_ || (site == penstock::fault_site::cuda_call && what != call_)) return {};
    return {.delay = delay};
  }
  std::atomic<bool> on{false};

 private:
  penstock::fault_site site_;
  std::string call_;
};

struct waited {
  double measured = 0;  ///< by the consumer itself, around each call for a batch
  pp::pipeline_report report;

  double charged() const {
    double sum = 0;
    for (const auto& charge : report.consumer_waits) sum += charge.seconds;
    return sum;
  }
  /// The stage that most of it is charged to.
  std::string worst() const {
    std::map<std::string, double> by_stage;
    for (const auto& charge : report.consumer_waits) by_stage[charge.stage] += charge.seconds;
    return std::max_element(by_stage.begin(), by_stage.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
  }
};

waited consume_timed(pp::pipeline& from) {
  waited w;
  auto range = from.epochs(0, 1);
  for (;;) {
    const auto start = std::chrono::steady_clock::now();
    pp::batch next = range.next();
    w.measured += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!next) break;
  }
  w.report = from.report();
  return w;
}

/// A pipeline with every stage, one of which takes 4 ms longer for each block.
struct slowed {
  std::string where;
  std::string stage;  ///< as the report calls it
  friend std::ostream& operator<<(std::ostream& out, const slowed& s) { return out << s.where; }
};
const auto stages = data::make(std::vector<slowed>{{"reading", "read"},
                                                   {"first host transform", "augment"},
                                                   {"second host transform", "crop"},
                                                   {"gather", "gather"},
                                                   {"device transform", "normalise"},
                                                   {"decoding", "decode"}});

waited run_with_delay(const small_file& file, const std::string& device, const std::string& where, bool shuffle) {
  const bool reading = where == "reading", copying = where == "copy";
  const auto faults =
      std::make_shared<slow>(reading ? penstock::fault_site::read_file : penstock::fault_site::cuda_call,
                             copying ? "cudaMemcpyAsync" : "cudaGraphLaunch");
  const auto pause_in = [&](const char* name) {
    return [wait = where == name](const pp::block&) {
      if (wait) std::this_thread::sleep_for(delay);
    };
  };
  const pp::order_options order =
      shuffle ? pp::order_options(pp::shuffled{.seed = 1, .run_rows = 64, .pool_rows = 512}) : pp::sequential{};
  auto pipeline = (pp::read(file.all(), order) | penstock::fault_seam(faults) |
                   pp::transform_host({.name = "augment", .concurrency = 2}, pause_in("first host transform")) |
                   pp::transform_host({.name = "crop"}, pause_in("second host transform")) |
                   pp::transform_device({.name = "normalise"}, pause_in("device transform")) |
                   pp::transport({.block_bytes = 8192, .slots = 40, .threads = 2}) | pp::batched({.rows = 100}))
                      .build(gpu::device::parse(device), small);
  faults->on = reading || copying || where == "gather";
  waited w = consume_timed(pipeline);
  faults->on = false;
  return w;
}

/// Of random steps, which gzip shortens to a half, in chunks of 1 MiB: decoding them takes far longer than reading.
class compressed_file {
 public:
  compressed_file() {
    std::mt19937 random(1);
    std::vector<float> steps(rows * 1024);
    for (float value = 0; float& step : steps) step = value += static_cast<float>(random() % 64) / 64 - 0.5f;
    penstock::io::writer file(path);
    file.create("/x", penstock::type::float32, {rows, 1024}, {.chunk_shape = {256, 1024}, .deflate_level = 4});
    file.write_rows("/x", 0, rows, std::as_bytes(std::span(steps)));
    file.commit();
  }
  ~compressed_file() { std::filesystem::remove(path); }
  compressed_file(const compressed_file&) = delete;
  compressed_file& operator=(const compressed_file&) = delete;

  static constexpr std::uint64_t rows = 2048;
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("penstock-compressed-" + std::to_string(::getpid()) + ".h5");
};

/// Rows whose chunks take milliseconds to decode, and next to nothing to read; shuffled, each is decoded 32 times:
/// gathers that a sanitizer looks at take less all the same.
waited run_decoding(const std::string& device, bool shuffle) {
  const compressed_file file;
  const pp::order_options order =
      shuffle ? pp::order_options(pp::shuffled{.seed = 1, .run_rows = 8, .pool_rows = 512}) : pp::sequential{};
  auto pipeline = (pp::read(pp::source{}.field("x", penstock::io::datasets(file.path.string(), "/x")), order) |
                   pp::transport({.threads = 1}) | pp::batched({.rows = 100}))
                      .build(gpu::device::parse(device), {.device_bytes = 64_MiB, .pinned_bytes = 32_MiB});
  return consume_timed(pipeline);
}

/// The consumer's own clock is the other account. Between its readings and the pipeline's lies next to nothing, unless
/// another process takes the processor there: then it is measured once more.
void check_that_it_adds_up(const slowed& slow, const std::string& device, bool shuffle) {
  const small_file file(2000, 64);
  if (device != "host") run_with_delay(file, device, "nowhere", shuffle);  // a device loads its kernels then
  for (int tries = 1;; ++tries) {
    const waited w =
        slow.where == "decoding" ? run_decoding(device, shuffle) : run_with_delay(file, device, slow.where, shuffle);
    BOOST_TEST_INFO(to_text(w.report));
    // What goes to a device together shares an event: who waits for the first of it waits until the last is issued.
    const bool shares_event = device != "host" && (slow.where == "gather" || slow.where == "device transform");
    BOOST_TEST((w.worst() == slow.stage || (shares_event && w.worst() == "handing over")), w.worst());
    BOOST_TEST(w.charged() == w.report.consumer_wait_seconds, boost::test_tools::tolerance(1e-6));
    if (std::abs(w.charged() - w.measured) <= 0.02 * w.measured) break;
    BOOST_REQUIRE_MESSAGE(tries < 5, "charged " << w.charged() << " s, measured " << w.measured << " s");
  }
}

/// A run whose consumer took two batches and went elsewhere: there is no room for more rows, and nearly all of the time
/// of one stage went into one wait.
struct standing_still {
  standing_still(const pp::order_options& order, std::string name, std::string cause)
      : stage(std::move(name)),
        waits_for(std::move(cause)),
        pipeline((pp::read(file.plain(), order) | pp::transport({.block_bytes = 8192, .slots = 6, .threads = 2}) |
                  pp::batched({.rows = 100}))
                     .build(gpu::device::host(), small)) {
    range.emplace(pipeline.epochs(0, 1000));
    for (int batch = 0; batch < 2; ++batch) BOOST_REQUIRE(range->next());
    pp::pipeline_report report;
    const auto share = [&] { return wait_of(report) / static_cast<double>(stage_of(report).workers) / report.seconds; };
    for (int tries = 0; tries < 500; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      report = pipeline.report();
      if (share() >= 0.9) break;
    }
    BOOST_TEST_INFO(to_text(report));
    BOOST_REQUIRE(share() >= 0.9);
    BOOST_TEST(stage_of(report).waited_for == waits_for);
  }

  pp::stage_report stage_of(const pp::pipeline_report& report) const {
    return *std::ranges::find(report.stages, stage, &pp::stage_report::name);
  }
  double wait_of(const pp::pipeline_report& report) const {
    const pp::stage_report in = stage_of(report);
    return std::ranges::find(in.waits, waits_for, &pp::time_charge::cause)->seconds;
  }

  std::string stage, waits_for;
  small_file file{3000, 64};
  pp::pipeline pipeline;
  std::optional<pp::epoch_range> range;
};

constexpr double away_seconds = 0.05;
void go_away() { std::this_thread::sleep_for(std::chrono::duration<double>(away_seconds)); }

}  // namespace

BOOST_AUTO_TEST_SUITE(reports, *boost::unit_test::timeout(300))

BOOST_AUTO_TEST_CASE(a_block_that_waits_for_threads_which_decode_waits_for_decoding) {
  const compressed_file file;
  auto pipeline = (pp::read(pp::source{}.field("x", penstock::io::datasets(file.path.string(), "/x"))) |
                   pp::transport({.threads = 1}) | pp::batched({.rows = 256}))
                      .build(gpu::device::host(), {.device_bytes = 64_MiB, .pinned_bytes = 4_MiB});
  pp::pipeline_report report;
  for (int tries = 0; tries < 5; ++tries) {  // another process may take the processor amid a read
    std::uint64_t rows = 0;
    for (const pp::batch& batch : pipeline.epochs(0, 1)) rows += batch.rows();
    BOOST_TEST(rows == file.rows);
    report = pipeline.report();
    if (report.reading.decode_seconds > report.reading.read_seconds) break;
  }
  BOOST_TEST_INFO(to_text(report));
  const auto charged = [&](const std::string& cause) {
    const auto found = std::ranges::find(report.consumer_waits, cause, &pp::time_charge::cause);
    return found == report.consumer_waits.end() ? 0 : found->seconds;
  };
  // As the threads' time is shared, so is a wait for them.
  const double decode = report.reading.decode_seconds, read = report.reading.read_seconds;
  BOOST_TEST(decode > read);
  BOOST_TEST(charged("being decoded") > 0);
  BOOST_TEST(charged("not yet read (threads are decoding)") > 0);  // the first block, before its thread is awake
  BOOST_TEST(
      charged("not yet read (threads are decoding)") * read == charged("not yet read (threads are reading)") * decode,
      boost::test_tools::tolerance(1e-6));
  BOOST_TEST(report.bottleneck.find("reading: ") == std::string::npos, report.bottleneck);
}

BOOST_DATA_TEST_CASE(what_the_consumer_waited_is_charged_to_the_slow_stage_and_adds_up,
                     every_device* stages* data::make({false, true}), name, slow, shuffle) {
  check_that_it_adds_up(slow, name, shuffle);
}

BOOST_AUTO_TEST_CASE(calls_of_the_driver_that_take_long_are_charged_to_copies_and_add_up, penstock::test::on_gpu()) {
  for (const bool shuffle : {false, true})
    check_that_it_adds_up({"copy", "copy"}, penstock::test::first_gpu().name(), shuffle);
}

BOOST_DATA_TEST_CASE(stages_say_what_they_did_and_whom_they_waited_for, every_device, name) {
  const small_file file(2000, 64);
  constexpr std::chrono::milliseconds longer{10};  // than whatever else a block takes, also where a sanitizer looks on
  const auto build = [&] {
    return (pp::read(file.all()) |
            pp::transform_host({.name = "augment"}, [&](const pp::block&) { std::this_thread::sleep_for(longer); }) |
            pp::transport({.block_bytes = 8192, .slots = 6, .threads = 2}) | pp::batched({.rows = 100}))
        .build(gpu::device::parse(name), small);
  };
  {
    auto first_use = build();  // a device loads its kernels then
    penstock::test::consume(first_use, 0, 1);
  }
  auto pipeline = build();
  pp::pipeline_report report;
  for (int tries = 0; tries < 5; ++tries) {  // another process may take the processor amid the report
    if (tries > 0) pipeline = build();
    std::uint64_t rows = 0;
    for (const pp::batch& batch : pipeline.epochs(0, 1)) rows += batch.valid_rows();
    BOOST_TEST(rows == 2000u);
    report = pipeline.report();
    const pp::stage_report& last = report.stages.at(1);
    if (last.busy_seconds + last.wait_seconds <= report.seconds * 1.001) break;
  }
  BOOST_TEST_INFO(to_text(report));
  const pp::stage_report &read = report.stages.at(0), &augment = report.stages.at(1);
  const std::uint64_t blocks = (2000 + pipeline.plan().block_rows - 1) / pipeline.plan().block_rows;
  BOOST_TEST(read.blocks == blocks);
  BOOST_TEST(augment.blocks == blocks);
  BOOST_TEST(augment.bytes == 2000u * (33 * 4 + 4 + 12));
  BOOST_TEST(augment.workers == 1u);
  const double slept = static_cast<double>(blocks) * std::chrono::duration<double>(longer).count();
  BOOST_TEST(augment.busy_seconds >= slept);
  BOOST_TEST(augment.busy_seconds + augment.wait_seconds <= report.seconds * 1.001);
  BOOST_TEST(read.busy_seconds + read.wait_seconds <= 2 * report.seconds * 1.001);
  // The transform holds slots, or the threads that would read.
  BOOST_TEST((read.waited_for == "a free slot" || read.waited_for == "a processor"), read.waited_for);
  BOOST_TEST(read.mean_queue + augment.mean_queue > 1);
  BOOST_TEST(augment.most_queue <= 6u);
  BOOST_TEST(report.slots == 6u);
  BOOST_TEST(report.most_slots_in_use == 6u);
  BOOST_TEST(report.mean_slots_in_use > 3);
  BOOST_TEST(report.reading.stored_bytes >= report.bytes);  // both, from the same file
  for (const pp::memory_use& use : report.memory) {
    BOOST_TEST(use.peak_bytes > 0u);
    BOOST_TEST(use.peak_bytes <= use.planned_bytes);
  }
  BOOST_TEST(report.bottleneck.find("augment: ") == 0u);
  BOOST_TEST(report.device_stall.applies == (name != "host"));
}

// Its threads are mostly not awake yet; runs follow each other, since sometimes they are.
BOOST_DATA_TEST_CASE(a_pause_before_the_first_batch_is_no_time_of_the_stages, every_device, name) {
  const small_file file(2000, 64);
  constexpr int runs = 50;
  constexpr std::chrono::milliseconds away{20};
  auto pipeline = (pp::read(file.all()) | pp::transform_host({.name = "augment"}, [](const auto&) {}) |
                   pp::transport({.block_bytes = 8192, .slots = 6, .threads = 2}) | pp::batched({.rows = 100}))
                      .build(gpu::device::parse(name), small);
  for (int run = 0; run < runs; ++run) {
    const auto range = pipeline.epochs(0, 1);
    pipeline.pause();
    std::this_thread::sleep_for(away);
  }
  const pp::pipeline_report report = pipeline.report();
  BOOST_TEST_INFO(to_text(report));
  for (const pp::stage_report& stage : report.stages) {
    const double most = static_cast<double>(stage.workers) * report.seconds;
    BOOST_TEST(stage.busy_seconds + stage.wait_seconds <= most + 0.002 * runs, stage.name);
  }
}

// The consumer's own clock is the other account. Blocks are read ahead while it is away, as far as there is room.
BOOST_DATA_TEST_CASE(a_pause_of_the_consumer_is_no_time_of_the_report, every_device, name) {
  const small_file file(2000, 64);
  auto pipeline = (pp::read(file.all()) |
                   pp::transform_host({.name = "augment"}, [](const auto&) { std::this_thread::sleep_for(delay); }) |
                   pp::transport({.block_bytes = 8192, .slots = 6, .threads = 2}) | pp::batched({.rows = 100}))
                      .build(gpu::device::parse(name), small);
  const auto time = [](const auto& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  pipeline.pause();  // there is no run yet
  std::optional<pp::epoch_range> range;
  double at_work = time([&] { range.emplace(pipeline.epochs(0, 3)); });
  double away = 0;
  for (int epoch = 0; epoch < 3; ++epoch) {
    at_work += time([&] {
      for (int batch = 0; batch < 20; ++batch) BOOST_REQUIRE_EQUAL(range->next().epoch(), epoch);
      if (epoch < 2) pipeline.pause();
    });
    if (epoch == 2) break;
    const pp::pipeline_report before = pipeline.report();
    away += time([&] { std::this_thread::sleep_for(std::chrono::duration<double>(at_work)); });
    pipeline.pause();  // again: it goes on
    const pp::pipeline_report after = pipeline.report({.link_bytes_per_second = 1e9});
    BOOST_TEST(after.seconds == before.seconds);
    BOOST_TEST(after.rows == 2000u * (static_cast<unsigned>(epoch) + 1));
    BOOST_TEST(after.stages.at(1).bytes == before.stages.at(1).bytes);
    BOOST_TEST(after.limits.link_bytes_per_second.value_or(0) == 1e9);
    BOOST_TEST(before.bottleneck.find("augment: ") == 0u, before.bottleneck);
  }
  const pp::pipeline_report report = pipeline.report();
  BOOST_TEST_INFO(to_text(report));
  BOOST_TEST(away > at_work);
  BOOST_TEST(report.rows == 6000u);
  BOOST_TEST(report.seconds <= at_work * 1.05);
  BOOST_TEST(report.seconds >= at_work * 0.8);
  BOOST_TEST(report.consumer_wait_seconds <= report.seconds);
  for (const pp::stage_report& stage : report.stages) {
    BOOST_TEST_INFO(stage.name);
    BOOST_TEST(stage.busy_seconds + stage.wait_seconds <= static_cast<double>(stage.workers) * report.seconds * 1.001);
    BOOST_TEST(stage.mean_at_work <= static_cast<double>(stage.workers) * 1.001);
  }
  range.reset();
  BOOST_TEST(pipeline.report().seconds <= at_work * 1.05 + 0.05);  // the end of a run is its time
}

// The consumer keeps the range, goes on elsewhere, and asks for the report later.
BOOST_DATA_TEST_CASE(time_after_the_consumer_was_told_of_the_end_is_not_the_reports, every_device, name) {
  const small_file file(1000, 64);
  auto pipeline = (pp::read(file.all()) | pp::batched({.rows = 100})).build(gpu::device::parse(name), small);
  const auto elsewhere = [](int times = 1) { std::this_thread::sleep_for(times * std::chrono::milliseconds(20)); };
  auto range = pipeline.epochs(0, 1);
  while (range.next())
    ;
  const double told = pipeline.report().seconds;
  BOOST_TEST(told > 0);
  elsewhere();
  BOOST_TEST(pipeline.report().seconds == told);
  pipeline.pause();  // there is nothing to pause any more
  elsewhere();
  BOOST_TEST(!range.next());
  BOOST_TEST(pipeline.report().seconds == told);

  // A pause ends with the run that it is of.
  auto second = pipeline.epochs(1, 1);
  for (int batch = 0; batch < 10; ++batch) BOOST_REQUIRE(second.next());
  pipeline.pause();
  const double paused = pipeline.report().seconds;
  BOOST_TEST(paused > told);
  elsewhere(20);
  BOOST_TEST(!second.next());
  const double both = pipeline.report().seconds;
  elsewhere();
  BOOST_TEST(pipeline.report().seconds == both);
  BOOST_TEST(both >= paused);
  BOOST_TEST(both < paused + 0.3);
}

BOOST_AUTO_TEST_CASE(the_end_of_a_range_whose_run_was_replaced_ends_no_pause_of_the_next_one) {
  const small_file file(1000, 64);
  auto pipeline =
      std::make_optional((pp::read(file.all()) | pp::batched({.rows = 100})).build(gpu::device::host(), small));
  auto before = pipeline->epochs(0, 1);
  for (int batch = 0; batch < 10; ++batch) BOOST_REQUIRE(before.next());
  auto range = pipeline->epochs(1, 1);
  BOOST_REQUIRE(range.next());
  pipeline->pause();
  const double paused = pipeline->report().seconds;
  BOOST_TEST(!before.next());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  BOOST_TEST(pipeline->report().seconds == paused);
  for (int batch = 1; batch < 10; ++batch) BOOST_REQUIRE(range.next());
  pipeline.reset();
  BOOST_TEST(!range.next());  // touches nothing of it
}

BOOST_AUTO_TEST_CASE(time_after_the_error_that_ends_a_run_is_not_the_reports) {
  const small_file file(1000, 64);
  auto pipeline = (pp::read(file.all()) |
                   pp::transform_host({.name = "fails"},
                                      [](const auto&) {
                                        std::this_thread::sleep_for(std::chrono::milliseconds(50));
                                        throw std::runtime_error("it does");
                                      }) |
                   pp::batched({.rows = 100}))
                      .build(gpu::device::host(), small);
  auto range = pipeline.epochs(0, 1);
  BOOST_CHECK_THROW(range.next(), pp::error);
  const pp::pipeline_report report = pipeline.report();
  const double told = report.seconds;
  BOOST_TEST(told >= 0.05);
  BOOST_TEST(report.consumer_wait_seconds >= 0.04);  // for what ended it
  double charged = 0;
  for (const pp::time_charge& wait : report.consumer_waits) charged += wait.seconds;
  BOOST_TEST(charged == report.consumer_wait_seconds, boost::test_tools::tolerance(0.02));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  BOOST_TEST(pipeline.report().seconds == told);
}

// What a function of the consumer's own throws ends no run.
BOOST_AUTO_TEST_CASE(time_after_a_wait_that_the_consumer_broke_off_is_the_reports) {
  const small_file file(1000, 64);
  std::atomic<bool> broken_off{false};
  const auto hold = [&](const pp::block&) {
    while (!broken_off) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  auto pipeline = (pp::read(file.all()) | pp::transform_host({.name = "hold"}, hold) | pp::batched({.rows = 100}))
                      .build(gpu::device::host(), small);
  auto range = pipeline.epochs(0, 1, {.while_waiting = [&] {
                                 if (!broken_off) throw std::runtime_error("not now");
                               }});
  BOOST_CHECK_THROW(range.next(), std::runtime_error);
  BOOST_TEST(pipeline.report().consumer_wait_seconds >= 0.09);  // it is asked every 100 ms
  const double told = pipeline.report().seconds;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  BOOST_TEST(pipeline.report().seconds >= told + 0.02);
  broken_off = true;
  BOOST_TEST(range.next().valid_rows() == 100u);
}

BOOST_AUTO_TEST_CASE(the_device_threads_wait_counts_until_now_while_the_consumer_is_elsewhere) {
  standing_still run(pp::shuffled{.seed = 1, .run_rows = 64, .pool_rows = 512}, "device thread", "free rows");
  const pp::pipeline_report before = run.pipeline.report();
  go_away();
  const pp::pipeline_report after = run.pipeline.report();
  BOOST_TEST_INFO(to_text(after));
  BOOST_TEST(run.wait_of(after) >= run.wait_of(before) + away_seconds);
  const pp::stage_report thread = run.stage_of(before), later = run.stage_of(after);
  BOOST_TEST(later.busy_seconds == thread.busy_seconds, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(later.wait_seconds - thread.wait_seconds == run.wait_of(after) - run.wait_of(before),
             boost::test_tools::tolerance(1e-9));
  BOOST_TEST(after.stages.at(0).name == "read");
  BOOST_TEST(after.stages.at(0).waited_for == "a free slot");
}

BOOST_AUTO_TEST_CASE(neither_a_pause_nor_what_comes_after_a_run_is_a_wait_of_the_device_thread) {
  standing_still run(pp::shuffled{.seed = 1, .run_rows = 64, .pool_rows = 512}, "device thread", "free rows");
  const double before = run.wait_of(run.pipeline.report());
  run.pipeline.pause();
  go_away();
  BOOST_REQUIRE(run.range->next());
  const pp::pipeline_report resumed = run.pipeline.report();
  BOOST_TEST_INFO(to_text(resumed));
  BOOST_TEST(run.wait_of(resumed) >= before);
  BOOST_TEST(run.stage_of(resumed).busy_seconds + run.stage_of(resumed).wait_seconds <= resumed.seconds * 1.001);

  run.range.reset();
  const pp::pipeline_report over = run.pipeline.report();
  go_away();
  const pp::pipeline_report later = run.pipeline.report();
  BOOST_TEST(run.wait_of(over) >= before);
  for (std::size_t n = 0; n < over.stages.size(); ++n)
    for (std::size_t w = 0; w < over.stages[n].waits.size(); ++w)
      BOOST_TEST(later.stages.at(n).waits.at(w).seconds == over.stages[n].waits[w].seconds);
}

BOOST_AUTO_TEST_CASE(readers_of_rows_that_land_where_they_are_consumed_wait_for_free_rows_until_now) {
  const standing_still run(pp::sequential{}, "read", "free rows");
  BOOST_TEST(run.pipeline.plan().slots == 0u);
  const pp::pipeline_report before = run.pipeline.report();
  go_away();
  BOOST_TEST(run.wait_of(run.pipeline.report()) >= run.wait_of(before) + 0.9 * 2 * away_seconds);
}

// One thread gathers and lets device transforms work: each of them has its bytes, and waits for what that thread waits
// for, or while it does the other.
BOOST_AUTO_TEST_CASE(what_the_device_thread_does_is_told_by_stage_with_bytes_and_waits) {
  const small_file file(3000, 64);
  const auto sleep = [](const pp::block& block) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    gpu::fill(block.stream(), block.output<std::int32_t>("mark"), 1, block.rows() * 4);
  };
  auto pipeline = (pp::read(file.all(), pp::shuffled{.seed = 1}) |
                   pp::transform_device({.name = "slow", .outputs = {{"mark", penstock::type::int32, {}}}}, sleep) |
                   pp::batched({.rows = 100}))
                      .build(gpu::device::host(), small);
  penstock::test::consume(pipeline, 0, 2);
  const pp::pipeline_report report = pipeline.report();
  BOOST_TEST_INFO(to_text(report));
  const auto stage = [&](std::string_view name) {
    return *std::ranges::find(report.stages, name, &pp::stage_report::name);
  };
  const pp::stage_report gather = stage("gather"), slow = stage("slow"), thread = stage("device thread");
  constexpr std::uint64_t row = 33 * 4 + 12 * 4 + 4;
  BOOST_TEST(gather.bytes == 6000 * (row + 8));  // with the numbers that a transform may ask for
  BOOST_TEST(slow.bytes == 6000 * (row + 4));    // all fields, as it leaves them
  BOOST_TEST(thread.bytes == 0u);
  BOOST_TEST(slow.busy_seconds > gather.busy_seconds);
  for (const auto& one : {gather, slow}) {
    BOOST_TEST_INFO(one.name);
    BOOST_TEST(one.busy_seconds + one.wait_seconds == thread.busy_seconds + thread.wait_seconds,
               boost::test_tools::tolerance(1e-3));
    BOOST_TEST(one.waits.size() == thread.waits.size() + 1);
  }
  BOOST_TEST(gather.waits.back().seconds >= slow.busy_seconds);
}

BOOST_AUTO_TEST_CASE(a_wait_before_the_first_block_is_in_the_line_is_no_wait_for_a_slot) {
  const small_file file(200, 64);
  auto pipeline = (pp::read(file.plain()) | pp::batched({.rows = 100})).build(gpu::device::host(), small);
  BOOST_REQUIRE_EQUAL(pipeline.plan().slots, 0u);  // rows land where they are consumed
  penstock::test::consume(pipeline, 0, 1);
  const pp::pipeline_report report = pipeline.report();
  BOOST_TEST_INFO(to_text(report));
  double charged = 0;
  for (const pp::time_charge& wait : report.consumer_waits) {
    charged += wait.seconds;
    if (wait.stage == "slots") BOOST_TEST(wait.seconds == 0);
  }
  BOOST_TEST(charged == report.consumer_wait_seconds, boost::test_tools::tolerance(1e-6));
}

// Two layouts, and a dataset without rows, in one field.
BOOST_AUTO_TEST_CASE(a_field_of_several_datasets_says_how_each_of_them_is_read) {
  const small_file chunked(100, 64), none(0), plain(60), more(40);
  auto segments = none.at("/wide");
  for (const auto* file : {&chunked, &plain, &more}) segments.push_back(file->at("/wide").front());
  const auto line_of = [](std::vector<penstock::io::location> of) {
    const auto plan = pp::read(pp::source{}.field("x", std::move(of))).open().plan(gpu::device::host(), small);
    return plan.field_reports.at(0);
  };
  BOOST_TEST(line_of(segments) == "field x: 4 segments: 1 direct (chunked, no filter), 2 direct (contiguous)");
  BOOST_TEST(line_of(plain.at("/wide")) == "field x: 1 segment, direct (contiguous)");
  BOOST_TEST(line_of({none.at("/wide").front(), plain.at("/wide").front()}) ==
             "field x: 2 segments, direct (contiguous)");
  BOOST_TEST(line_of(none.at("/wide")).find("field x: 1 segment, ") == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
