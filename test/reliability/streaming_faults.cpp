// Every fault at every stage of a pipeline, at many positions: the error is the right one, nothing hangs or leaks, and
// the next epoch is healthy.

#include "../pipeline/small_file.hpp"
#include "fault_table.hpp"
#include "nth_use.hpp"
#include "resources.hpp"
#include "watchdog.hpp"

#include <penstock/pipeline/description.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <latch>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
namespace data = boost::unit_test::data;
using namespace penstock::literals;
using namespace penstock::test;

namespace {

constexpr std::uint64_t file_rows = 1500;
const gpu::budget enough{.device_bytes = 8_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB};
const auto every_device = data::make(devices());
constexpr std::chrono::milliseconds stall{30};  // the other stages run dry meanwhile

/// What user code does at its n-th call.
struct user_code {
  std::atomic<std::int64_t> left{-1};
  std::atomic<bool> happened{false};
  std::atomic<std::chrono::steady_clock::time_point> since{};
  std::function<void()> misbehave = [] {};
  void operator()() {
    if (left < 0 || left-- != 0) return;
    since = std::chrono::steady_clock::now();
    happened = true;
    misbehave();
  }
};

/// A pipeline with every stage: compressed chunks, a shuffled order, a conversion, both transforms, padding.
struct world {
  small_file file{file_rows, 64, 1};
  std::shared_ptr<nth_use> faults;
  user_code host, device, consumer;
  std::string on;

  explicit world(std::string name, std::shared_ptr<nth_use> f = {}) : faults(std::move(f)), on(std::move(name)) {}

  pp::pipeline build() {
    return (pp::read(file.all(), pp::shuffled{.seed = 2, .run_rows = 16, .pool_rows = 128}) |
            penstock::fault_seam(faults) |
            pp::transform_host({.name = "augment", .concurrency = 2}, [this](const pp::block&) { host(); }) |
            pp::transform_device({.name = "normalise"}, [this](const pp::block&) { device(); }) |
            pp::transport({.block_bytes = 8192, .slots = 4, .threads = 2}) |
            pp::batched({.rows = 50, .last = pp::last_batch::pad}))
        .build(gpu::device::parse(on), enough);
  }
  /// One epoch, values checked.
  std::string epoch(pp::pipeline& from, pp::consume_options options = {}) {
    std::vector<std::uint64_t> rows;
    for (const pp::batch& batch : from.epochs(0, 1, std::move(options))) {
      consumer();
      check(batch, rows);
    }
    return rows.size() == file_rows ? "right rows" : "rows are missing";
  }

  std::optional<pp::pipeline> built;  ///< outlives the fault, so that its next epoch can be tried
};

bool is_right(const outcome& how) { return how.name == "right rows"; }

/// The fault while a pipeline is built and streams; then the same pipeline where there is one, healthy.
void try_seam(const std::string& name, const std::string& stage, const std::string& fault,
              std::shared_ptr<nth_use> faults, std::function<bool(const outcome&)> expected) {
  world w(name, faults);
  try_positions({.stage = stage,
                 .fault = fault,
                 .on = name,
                 .run =
                     [&](std::int64_t n) {
                       faults->arm(n);
                       std::optional<pp::pipeline> pipeline;
                       const outcome how = outcome_of([&] {
                         pipeline.emplace(w.build());
                         return w.epoch(*pipeline);
                       });
                       faults->disarm();
                       if (pipeline && faults->happened()) BOOST_TEST(w.epoch(*pipeline) == "right rows");
                       return how;
                     },
                 .happened = [&] { return faults->happened(); },
                 .since = [&] { return faults->since(); },
                 .expected = std::move(expected),
                 .afterwards =
                     [&] {
                       auto anew = w.build();
                       BOOST_TEST(w.epoch(anew) == "right rows");
                     },
                 .most = 120});
}

/// Names the file, the dataset, the rows and the stage.
auto read_error(const std::string& cause) {
  return [cause](const outcome& how) {
    return how.name == "pipeline::error (read)" && how.says(".h5") && how.says("/") && how.says("rows ") &&
           how.says("read failed") && how.says(cause);
  };
}

}  // namespace

BOOST_AUTO_TEST_SUITE(streaming_faults, *boost::unit_test::timeout(1200))

BOOST_DATA_TEST_CASE(a_read_that_fails_is_an_error_and_a_short_one_is_none, every_device, name) {
  const auto site = penstock::fault_site::read_file;
  const auto fails = [&](const char* what, int code) {
    try_seam(name, "read", what, std::make_shared<nth_use>(site, penstock::fault{.error = code}),
             read_error("Input/output error"));
  };
  fails("EIO", EIO);
  try_seam(name, "read", "EINTR", std::make_shared<nth_use>(site, penstock::fault{.error = EINTR}), is_right);
  try_seam(name, "read", "short read", std::make_shared<nth_use>(site, penstock::fault{.at_most = 3}), is_right);
  try_seam(name, "read", "the file ends", std::make_shared<nth_use>(site, penstock::fault{.at_most = 0}),
           read_error("truncated"));
}

BOOST_DATA_TEST_CASE(a_file_that_does_not_open_is_an_error_and_a_signal_meanwhile_is_none, every_device, name) {
  try_seam(name, "open", "EINTR",
           std::make_shared<nth_use>(penstock::fault_site::open_file, penstock::fault{.error = EINTR}), is_right);
  try_seam(name, "open", "EMFILE",
           std::make_shared<nth_use>(penstock::fault_site::open_file, penstock::fault{.error = EMFILE}),
           [](const outcome& how) {
             return (how.name == "io::error" || how.name == "pipeline::error (read)") && how.says(".h5") &&
                    how.says("too many files are open") && how.says("ulimit -n");
           });
}

BOOST_DATA_TEST_CASE(memory_that_is_refused_is_an_error_that_names_it, every_device, name) {
  const auto refused = [&](const char* stage, penstock::fault_site site, const char* slab) {
    try_seam(name, stage, "allocation refused",
             std::make_shared<nth_use>(site, penstock::fault{.error = name == "host" ? ENOMEM : 2}),
             [slab](const outcome& how) { return how.name == "gpu::error" && how.says(slab) && how.says("lower"); });
  };
  // On the host nothing is copied, and a slot is device memory.
  if (name != "host") refused("pinned memory", penstock::fault_site::allocate_pinned, "pinned slab");
  refused("device memory", penstock::fault_site::allocate_device, "device slab");
  try_seam(name, "host memory", "allocation refused",
           std::make_shared<nth_use>(penstock::fault_site::allocate_host, penstock::fault{.error = ENOMEM}),
           [](const outcome& how) { return how.name == "io::error" && how.says(".h5") && how.says("host memory"); });
}

BOOST_DATA_TEST_CASE(a_use_that_takes_its_time_changes_nothing, every_device, name) {
  const penstock::fault slow{.delay = stall};
  try_seam(name, "read", "stalls", std::make_shared<nth_use>(penstock::fault_site::read_file, slow), is_right);
  try_seam(name, "copy, gather, publish, consume", "stalls",
           std::make_shared<nth_use>(penstock::fault_site::cuda_call, slow), is_right);
}

BOOST_DATA_TEST_CASE(a_call_of_the_driver_that_fails_is_an_error_that_names_it, every_device, name) {
  constexpr int launch_failure = 719;  // cudaErrorLaunchFailure
  try_seam(name, "copy, gather, publish, consume", "a CUDA call fails",
           std::make_shared<nth_use>(penstock::fault_site::cuda_call, penstock::fault{.error = launch_failure}),
           [](const outcome& how) {
             return how.name == "right rows" /* asked again, or an event that nobody needs */ ||
                    ((how.name == "gpu::error" || how.name.starts_with("pipeline::error (")) && how.says("cuda"));
           });
}

namespace {

/// The same for user code that misbehaves at its n-th call.
void try_user_code(
    const std::string& name, user_code world::*which, const std::string& stage, const std::string& fault,
    std::function<void()> misbehave, std::function<bool(const outcome&)> expected,
    const std::function<pp::consume_options()>& options = [] { return pp::consume_options{}; }) {
  world w(name);
  user_code& code = w.*which;
  code.misbehave = std::move(misbehave);
  try_positions({.stage = stage,
                 .fault = fault,
                 .on = name,
                 .run =
                     [&](std::int64_t n) {
                       auto pipeline = w.build();
                       code.happened = false;
                       code.left = n;
                       const outcome how = outcome_of([&] { return w.epoch(pipeline, options()); });
                       code.left = -1;
                       if (code.happened) BOOST_TEST(w.epoch(pipeline) == "right rows");
                       return how;
                     },
                 .happened = [&] { return code.happened.load(); },
                 .since = [&] { return code.since.load(); },
                 .expected = std::move(expected),
                 .most = 60});
}

void tire() { throw std::runtime_error("it is tired"); }

}  // namespace

BOOST_DATA_TEST_CASE(user_code_that_throws_ends_the_epoch_with_its_sentence, every_device, name) {
  const auto stage_error = [](const char* stage) {
    return [stage](const outcome& how) {
      return how.name == "pipeline::error (" + std::string(stage) + ")" && how.says("rows ") && how.says("it is tired");
    };
  };
  try_user_code(name, &world::host, "host transform", "throws", tire, stage_error("augment"));
  try_user_code(name, &world::device, "device transform", "throws", tire, stage_error("normalise"));
  try_user_code(name, &world::consumer, "consumer", "throws", tire,
                [](const outcome& how) { return how.name == "std::exception" && how.sentence == "it is tired"; });
}

BOOST_DATA_TEST_CASE(user_code_that_takes_its_time_changes_nothing, every_device, name) {
  const auto sleep = [] { std::this_thread::sleep_for(stall); };
  try_user_code(name, &world::host, "host transform", "stalls", sleep, is_right);
  try_user_code(name, &world::device, "device transform", "stalls", sleep, is_right);
  try_user_code(name, &world::consumer, "consumer", "stalls", sleep, is_right);
}

namespace {

/// User code that waits without end: until its run is stopped, which another thread asks for as soon as it waits.
class endless_wait {
 public:
  /// For the next run; its token.
  std::stop_token afresh() {
    stopper_ = {};  // the last one has ended, or nobody came
    stop_ = std::stop_source();
    waits_ = false;
    stopper_ = std::jthread([this](const std::stop_token& nobody_comes) {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, nobody_comes, [this] { return waits_; })) return;
      lock.unlock();
      stop_.request_stop();
    });
    return stop_.get_token();
  }
  void operator()() {
    std::unique_lock lock(mutex_);
    waits_ = true;
    changed_.notify_all();
    changed_.wait(lock, stop_.get_token(), [] { return false; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool waits_ = false;
  std::stop_source stop_;
  std::jthread stopper_;  // last: it uses the others
};

/// Once all blocks have come out, or the last batch is there, there is nothing left to be stopped; never at the first.
std::function<bool(const outcome&)> stopped() {
  return [first = true](const outcome& how) mutable {
    return how.name == "pipeline::stopped" || (!std::exchange(first, false) && is_right(how));
  };
}

void try_endless_waits(const std::string& name) {
  endless_wait wait;
  const auto afresh = [&] { return pp::consume_options{.stop = wait.afresh()}; };
  const auto for_ever = [&] { wait(); };
  try_user_code(name, &world::host, "host transform", "waits without end, then a stop", for_ever, stopped(), afresh);
  try_user_code(name, &world::device, "device transform", "waits without end, then a stop", for_ever, stopped(),
                afresh);
  try_user_code(name, &world::consumer, "consumer", "waits without end, then a stop", for_ever, stopped(), afresh);
}

}  // namespace

BOOST_DATA_TEST_CASE(a_stage_that_waits_without_end_is_ended_by_a_stop, every_device, name) { try_endless_waits(name); }

// Nobody asks for a stop here: the end of the pipeline must do. It waits for user code, which ends when it has begun.
BOOST_DATA_TEST_CASE(a_pipeline_may_be_destroyed_while_a_stage_waits, every_device, name) {
  for (user_code world::*which : {&world::host, &world::device}) {
    world w(name);
    std::latch waits(1), leaves(1);
    (w.*which).misbehave = [&] {
      waits.count_down();
      leaves.wait();
    };
    const watchdog watched("a pipeline that is destroyed while a stage waits");
    {
      auto once = w.build();
      BOOST_TEST(w.epoch(once) == "right rows");  // what a process takes once and keeps is no leak
    }
    const resources before = held_now();
    {
      std::optional<pp::pipeline> pipeline(w.build());
      (w.*which).left = 0;
      auto range = pipeline->epochs(0, 3);
      waits.wait();
      const std::jthread goes_on([&] { leaves.count_down(); });
      pipeline.reset();
    }
    BOOST_TEST((held_now() == before), "leaks: " << before << " before, " << held_now() << " after");
    BOOST_TEST((w.*which).happened);
    auto anew = w.build();
    BOOST_TEST(w.epoch(anew) == "right rows");
  }
}

BOOST_DATA_TEST_CASE(a_stage_that_asks_for_a_stop_is_stopped, every_device, name) {
  std::stop_source stop;
  const auto afresh = [&] {
    stop = std::stop_source();
    return pp::consume_options{.stop = stop.get_token()};
  };
  const auto ask = [&] { stop.request_stop(); };
  try_user_code(name, &world::host, "host transform", "asks for a stop", ask, stopped(), afresh);
  try_user_code(name, &world::device, "device transform", "asks for a stop", ask, stopped(), afresh);
  try_user_code(name, &world::consumer, "consumer", "asks for a stop", ask, stopped(), afresh);
}

BOOST_AUTO_TEST_SUITE_END()
