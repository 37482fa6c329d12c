// The order of work on CUDA streams, proven with a kernel that spins until the host opens a gate: what comes after it
// in order cannot have happened while the gate is shut, and what does not wait for it has.
#include <penstock/gpu/gather.hpp>
#include <penstock/gpu/memory.hpp>
#include <penstock/gpu/stream.hpp>

#include <boost/test/unit_test.hpp>

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "../support/gpu.hpp"
#include "spin.hpp"

using namespace penstock;
using gpu::memory_kind;

namespace {

constexpr std::size_t words = 1024;

// A gate, a mark that a spinning kernel sets, and some numbers on either side.
class stage {
 public:
  explicit stage(gpu::device d) : memory_(d, items()), stream_(d) {
    set(gate(), 0);
    for (std::size_t n = 0; n < words; ++n) host()[n] = 1;
    fill(stream_, mark(), 0, 4);
    fill(stream_, numbers(), 0, 4 * words);
    stream_.synchronize();
  }
  // Whatever a failed check leaves behind, kernels end before the memory goes.
  ~stage() {
    open();
    cudaDeviceSynchronize();
  }

  std::uint32_t* gate() const { return word(memory_kind::pinned, "gate"); }
  std::uint32_t* host() const { return word(memory_kind::pinned, "host"); }
  std::uint32_t* mark() const { return word(memory_kind::device, "mark"); }
  std::uint32_t* numbers() const { return word(memory_kind::device, "numbers"); }
  void open() const { set(gate(), 1); }

 private:
  static gpu::ledger items() {
    gpu::ledger ledger;
    ledger.add(memory_kind::pinned, "gate", 4);
    ledger.add(memory_kind::pinned, "host", 4 * words);
    ledger.add(memory_kind::device, "mark", 4);
    ledger.add(memory_kind::device, "numbers", 4 * words);
    return ledger;
  }
  std::uint32_t* word(memory_kind kind, const char* name) const {
    return reinterpret_cast<std::uint32_t*>(memory_.at(kind, name).data());
  }
  static void set(std::uint32_t* gate, std::uint32_t value) {
    std::atomic_ref(*gate).store(value, std::memory_order_seq_cst);
  }

  gpu::memory memory_;
  gpu::stream stream_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_order)

BOOST_AUTO_TEST_CASE(a_copy_waits_for_the_kernel_before_it_and_does_not_block, test::on_gpu()) {
  const auto d = test::first_gpu();
  const stage s(d);
  const gpu::stream stream(d);
  gpu::event event(d);
  test::spin_until(stream, s.gate(), s.mark(), 42);
  copy(stream, s.host(), s.mark(), 4);
  event.record(stream);
  BOOST_TEST(!event.done());
  BOOST_TEST(s.host()[0] == 1U);
  s.open();
  event.synchronize();
  BOOST_TEST(event.done());
  BOOST_TEST(s.host()[0] == 42U);
}

BOOST_AUTO_TEST_CASE(an_event_holds_another_stream, test::on_gpu()) {
  const auto d = test::first_gpu();
  const stage s(d);
  const gpu::stream first(d), second(d), third(d);
  gpu::event at_first(d), at_second(d), at_third(d);
  test::spin_until(first, s.gate(), s.mark(), 7);
  at_first.record(first);
  at_first.hold(second);
  copy(second, s.host(), s.mark(), 4);  // must see what the spinning kernel writes at its end
  at_second.record(second);
  fill(third, s.numbers(), 1, 4);
  at_third.record(third);
  at_third.synchronize();  // issued later, held by nothing: done while the gate is shut
  BOOST_TEST(!at_first.done());
  BOOST_TEST(!at_second.done());
  BOOST_TEST(s.host()[0] == 1U);
  s.open();
  at_second.synchronize();
  BOOST_TEST(s.host()[0] == 7U);
}

BOOST_AUTO_TEST_CASE(an_event_that_was_never_recorded_holds_nothing, test::on_gpu()) {
  const auto d = test::first_gpu();
  const gpu::stream stream(d);
  gpu::event never(d);
  BOOST_TEST(never.done());
  never.hold(stream);
  stream.synchronize();
}

BOOST_AUTO_TEST_CASE(a_stream_does_not_wait_for_stream_zero, test::on_gpu()) {
  const auto d = test::first_gpu();
  const stage s(d);
  const gpu::stream_ref zero(d, nullptr);
  const gpu::stream stream(d), urgent(d, true);
  gpu::event at_zero(d);
  test::spin_until(zero, s.gate(), s.mark(), 1);
  at_zero.record(zero);
  fill(stream, s.numbers(), 1, 4);
  fill(urgent, s.numbers(), 1, 4);
  stream.synchronize();
  urgent.synchronize();
  BOOST_TEST(!at_zero.done());
  s.open();
  zero.synchronize();
  BOOST_TEST(at_zero.done());
}

BOOST_AUTO_TEST_CASE(a_gather_runs_in_the_order_of_its_stream, test::on_gpu()) {
  const auto d = test::first_gpu();
  const stage s(d);
  const gpu::stream stream(d);
  gpu::event event(d);
  const gpu::gather_source source{
      .base = reinterpret_cast<const std::byte*>(s.mark()), .image_bytes = 4, .element = type::int32};
  const gpu::gather_target target{
      .base = reinterpret_cast<std::byte*>(s.numbers()), .rows = 1, .element = type::float32};
  const auto twice_and_a_half = [&] {
    gpu::gatherer{stream}(source, target, 1, gpu::permutation::identity(), 0, 0, 1, {2, 0.5});
  };
  // Once before: CUDA loads a kernel at its first launch, for which it may wait until others have ended.
  twice_and_a_half();
  stream.synchronize();
  test::spin_until(stream, s.gate(), s.mark(), 42);
  twice_and_a_half();
  copy(stream, s.host(), s.numbers(), 4);
  event.record(stream);
  BOOST_TEST(!event.done());
  s.open();
  event.synchronize();
  BOOST_TEST(reinterpret_cast<const float*>(s.host())[0] == 84.5F);
}

BOOST_AUTO_TEST_CASE(work_can_be_captured_into_a_graph, test::on_gpu()) {
  const auto d = test::first_gpu();
  const stage s(d);
  const gpu::stream stream(d);
  cudaStream_t native = stream.ref().native();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  BOOST_REQUIRE(cudaStreamBeginCapture(native, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  copy(stream, s.mark(), s.host(), 4);
  const gpu::gather_source source{
      .base = reinterpret_cast<const std::byte*>(s.mark()), .image_bytes = 4, .element = type::uint32};
  const gpu::gather_target target{
      .base = reinterpret_cast<std::byte*>(s.numbers()), .rows = 1, .element = type::uint32};
  gpu::gatherer{stream}(source, target, 1, gpu::permutation::identity(), 0, 0, 1);
  copy(stream, s.host() + 1, s.numbers(), 4);
  BOOST_REQUIRE(cudaStreamEndCapture(native, &graph) == cudaSuccess);
  BOOST_REQUIRE(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
  for (const std::uint32_t value : {5U, 6U}) {
    s.host()[0] = value;
    BOOST_REQUIRE(cudaGraphLaunch(executable, native) == cudaSuccess);
    stream.synchronize();
    BOOST_TEST(s.host()[1] == value);
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

BOOST_AUTO_TEST_CASE(timed_events_measure_the_device, test::on_gpu()) {
  const auto d = test::first_gpu();
  const stage s(d);
  const gpu::stream stream(d);
  gpu::event first(d, gpu::event_use::timing), last(d, gpu::event_use::timing);
  first.record(stream);
  test::spin_until(stream, s.gate(), s.mark(), 1);
  last.record(stream);
  s.open();
  last.synchronize();
  BOOST_TEST(milliseconds_between(first, last) > 0);
}

BOOST_AUTO_TEST_CASE(any_thread_can_use_a_stream, test::on_gpu()) {
  const auto d = test::first_gpu();
  const stage s(d);
  const gpu::stream stream(d);
  for (std::uint32_t n = 0; n < 4; ++n)
    std::jthread([&] {
      s.host()[0] = n;
      copy(stream, s.numbers() + n, s.host(), 4);
      stream.synchronize();
    }).join();
  copy(stream, s.host(), s.numbers(), 16);
  stream.synchronize();
  BOOST_TEST(std::vector(s.host(), s.host() + 4) == (std::vector<std::uint32_t>{0, 1, 2, 3}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_callers_device_stays_current_on_a_machine_with_several, test::on_gpu(2)) {
  BOOST_REQUIRE(cudaSetDevice(0) == cudaSuccess);
  const auto current = [] {
    int ordinal = -1;
    cudaGetDevice(&ordinal);
    return ordinal;
  };
  const auto d = gpu::device::cuda(1);
  const stage s(d);
  const gpu::stream stream(d);
  gpu::event event(d);
  fill(stream, s.numbers(), 1, 4);
  const gpu::gather_source source{
      .base = reinterpret_cast<const std::byte*>(s.numbers()), .image_bytes = 4, .element = type::uint32};
  const gpu::gather_target target{.base = reinterpret_cast<std::byte*>(s.mark()), .rows = 1, .element = type::uint32};
  gpu::gatherer{stream}(source, target, 1, gpu::permutation::identity(), 0, 0, 1);
  copy(stream, s.host(), s.mark(), 4);
  event.record(stream);
  event.synchronize();
  BOOST_TEST(s.host()[0] == 0x01010101U);
  BOOST_TEST(current() == 0);

  // An event of one device holds a stream of another.
  const stage other(gpu::device::cuda(0));
  const gpu::stream first(gpu::device::cuda(0));
  gpu::event at_first(gpu::device::cuda(0)), at_second(d);
  test::spin_until(first, other.gate(), other.mark(), 9);
  at_first.record(first);
  at_first.hold(stream);
  at_second.record(stream);
  BOOST_TEST(!at_second.done());
  other.open();
  at_second.synchronize();
  BOOST_TEST(at_first.done());
  BOOST_TEST(current() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
