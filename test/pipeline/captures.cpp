// A consumer captures CUDA graphs of its own while the pipeline works.
#include "small_file.hpp"

#include <cuda_runtime_api.h>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
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
  /// False where they do not come in time.
  bool come(const std::vector<std::string>& names) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] {
      return std::ranges::all_of(names, [&](const std::string& name) { return calls_[name] > 0; });
    });
  }

 private:
  const std::thread::id maker_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  std::map<std::string, int> calls_;
};

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
                      .build(test::first_gpu(), {.device_bytes = 64_MiB, .pinned_bytes = 64_MiB, .host_bytes = 64_MiB});
  auto run = pipeline.epochs(0, 1, {.stream = consumer});

  cudaGraph_t graph = nullptr;
  BOOST_REQUIRE(cudaStreamBeginCapture(captured.ref().native(), cudaStreamCaptureModeGlobal) == cudaSuccess);
  calls->open();
  BOOST_TEST(calls->come({"cudaMemcpyAsync", "cudaGraphLaunch", "cudaEventRecord", "cudaEventQuery"}));
  BOOST_TEST(cudaMemsetAsync(value, 0, sizeof(int), captured.ref().native()) == cudaSuccess);
  BOOST_TEST(cudaStreamEndCapture(captured.ref().native(), &graph) == cudaSuccess);
  BOOST_TEST(graph != nullptr);

  std::vector<std::uint64_t> rows;
  for (pp::batch& batch : run) test::check(batch, rows);
  BOOST_TEST(rows.size() == file.rows());
  cudaGraphDestroy(graph);
  cudaFree(value);
}

BOOST_AUTO_TEST_SUITE_END()
