// A consumer captures CUDA graphs of its own while the pipeline works.
#include "small_file.hpp"

#include <cuda_runtime_api.h>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "../support/gpu.hpp"

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
using namespace penstock;
using namespace penstock::literals;
using penstock::test::small_file;

namespace {

/// Holds CUDA calls of all threads but the one that made it until it is opened, and counts those that came after.
class held_calls : public fault_injector {
 public:
  fault before(fault_site site, std::string_view what, std::uint64_t, std::size_t) override {
    if (site != fault_site::cuda_call || std::this_thread::get_id() == maker_) return {};
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_; });
    ++calls_[std::string(what)];
    changed_.notify_all();
    return {};
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  /// Waits until each of them has come twice: the first one is over then. False where they do not come in time.
  bool are_made(const std::vector<std::string>& names) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] {
      return std::ranges::all_of(names, [&](const std::string& name) { return calls_[name] > 1; });
    });
  }

 private:
  const std::thread::id maker_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  std::map<std::string, int> calls_;
};

class first_exchange_fails : public fault_injector {
 public:
  fault before(fault_site, std::string_view what, std::uint64_t, std::size_t) override {
    if (what != "cudaThreadExchangeStreamCaptureMode" || failed_.exchange(true)) return {};
    return {.error = 719};
  }

 private:
  std::atomic<bool> failed_ = false;
};

const gpu::budget small{.device_bytes = 64_MiB, .pinned_bytes = 64_MiB, .host_bytes = 64_MiB};

}  // namespace

BOOST_AUTO_TEST_SUITE(captures, *boost::unit_test::timeout(300))

// In the mode that forbids most to other threads, which is that of torch.cuda.graph().
BOOST_AUTO_TEST_CASE(a_graph_is_captured_while_blocks_are_copied_and_gathered, test::on_gpu()) {
  const small_file file(4000, 64);
  const auto calls = std::make_shared<held_calls>();
  const gpu::stream consumer(test::first_gpu()), captured(test::first_gpu());
  void* value = nullptr;
  BOOST_REQUIRE(cudaMalloc(&value, sizeof(int)) == cudaSuccess);
  auto pipeline = (pp::read(file.all(), pp::shuffled{.seed = 1}) | fault_seam(calls) |
                   pp::transport({.block_bytes = 8192, .slots = 4}) | pp::batched({.rows = 50}))
                      .build(test::first_gpu(), small);
  auto run = pipeline.epochs(0, 1, {.stream = consumer});

  cudaGraph_t graph = nullptr;
  const cudaError_t begun = cudaStreamBeginCapture(captured.ref().native(), cudaStreamCaptureModeGlobal);
  calls->open();
  BOOST_REQUIRE(begun == cudaSuccess);
  BOOST_TEST(calls->are_made({"cudaMemcpyAsync", "cudaGraphLaunch", "cudaEventRecord", "cudaEventQuery"}));
  BOOST_TEST(cudaMemsetAsync(value, 0, sizeof(int), captured.ref().native()) == cudaSuccess);
  BOOST_TEST(cudaStreamEndCapture(captured.ref().native(), &graph) == cudaSuccess);
  BOOST_TEST(graph != nullptr);

  std::vector<std::uint64_t> rows;
  for (pp::batch& batch : run) test::check(batch, rows);
  BOOST_TEST(rows.size() == file.rows());
  cudaGraphDestroy(graph);
  cudaFree(value);
}

BOOST_AUTO_TEST_CASE(a_device_that_cannot_work_beside_captures_is_an_error_of_the_run) {
  for (const std::string& name : test::devices()) {
    const small_file file(200, 64);
    const auto faults = std::make_shared<first_exchange_fails>();
    // Shuffled, so that rows pass through the thread that works on the device, on the host as well.
    auto pipeline = (pp::read(file.plain(), pp::shuffled{.seed = 1}) | fault_seam(faults) | pp::batched({.rows = 50}))
                        .build(gpu::device::parse(name), small);
    BOOST_CHECK_EXCEPTION(test::consume(pipeline, 0, 1), pp::error, [](const pp::error& e) {
      return std::string(e.what()).find("cudaThreadExchangeStreamCaptureMode") != std::string::npos;
    });
    BOOST_TEST(test::consume(pipeline, 0, 1).size() == file.rows());  // and the next run is healthy
  }
}

BOOST_AUTO_TEST_SUITE_END()
