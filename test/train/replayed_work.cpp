#include "cuda/replayed_work.hpp"

#include "cuda/check.hpp"
#include "cuda/kernels.hpp"
#include "gpu.hpp"

#include <penstock/fault.hpp>
#include <penstock/gpu/error.hpp>
#include <penstock/gpu/memory.hpp>
#include <penstock/gpu/stream.hpp>

#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace penstock;

namespace {

constexpr std::size_t rows = 3, columns = 5, values = rows * columns;

/// Three inputs of constant values on the device, and a place for what is taken of each.
struct three_inputs {
  gpu::stream stream;
  gpu::memory memory{test::first_gpu(), [] {
                       gpu::ledger all;
                       for (const char* name : {"x0", "x1", "x2", "out0", "out1", "out2", "mean", "scale", "twice"})
                         all.add(gpu::memory_kind::device, name, values * sizeof(float));
                       all.add(gpu::memory_kind::device, "state", sizeof(train::step_state));
                       return all;
                     }()};

  explicit three_inputs(fault_seam faults = {}) : stream(test::first_gpu(), false, std::move(faults)) {
    for (int n = 0; n < 3; ++n) put("x" + std::to_string(n), std::vector<float>(values, static_cast<float>(n + 1)));
    put("mean", std::vector<float>(columns, 0.5F));
    put("scale", std::vector<float>(columns, 4));
    const train::step_state initial;
    gpu::copy(stream, memory.at(gpu::memory_kind::device, "state").data(), &initial, sizeof initial);
    stream.synchronize();
  }
  float* at(const std::string& name) {
    return reinterpret_cast<float*>(memory.at(gpu::memory_kind::device, name).data());
  }
  void put(const std::string& name, const std::vector<float>& from) {
    gpu::copy(stream, at(name), from.data(), from.size() * sizeof(float));
    stream.synchronize();
  }
  std::vector<float> get(const std::string& name) {
    std::vector<float> all(values);
    gpu::copy(stream, all.data(), at(name), values * sizeof(float));
    stream.synchronize();
    return all;
  }
  train::intake<float> intake_of(int input, int out, std::uint64_t valid = rows) {
    return {.rows = {.block = {rows, valid, 0}, .x = at("x" + std::to_string(input))},
            .columns = columns,
            .mean = at("mean"),
            .scale = at("scale"),
            .out = at("out" + std::to_string(out)),
            .state = reinterpret_cast<train::step_state*>(at("state"))};
  }
};

/// Lets a call of the driver fail, so many times.
struct failing_call final : fault_injector {
  std::string name;
  int times;

  failing_call(std::string call, int n) : name(std::move(call)), times(n) {}
  fault before(fault_site site, std::string_view what, std::uint64_t, std::size_t) override {
    if (site != fault_site::cuda_call || what != name || times == 0) return {};
    --times;
    return {.error = cudaErrorMemoryAllocation};
  }
};

/// (x - mean) * scale of input number n, whose values are n + 1; padding is 0.
std::vector<float> taken(int input, std::size_t valid = rows) {
  std::vector<float> all(values, 0);
  for (std::size_t i = 0; i < valid * columns; ++i) all[i] = (static_cast<float>(input + 1) - 0.5F) * 4;
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(replayed_work)

BOOST_AUTO_TEST_CASE(each_replay_takes_the_rows_that_it_is_given_however_many_wait, test::on_gpu()) {
  three_inputs data;
  const train::cuda::current_device current(test::first_gpu().ordinal());
  train::cuda::replayed_work replayed;
  int as_they_are = 0;  // twice: once to be done, and once to be recorded
  const auto run = [&](int input, int out, std::uint64_t valid = rows) {
    train::cuda::take_launch<float> take(data.intake_of(input, out, valid));
    replayed.run(data.stream, take.params(), [&] {
      ++as_they_are;
      gpu::copy(data.stream, data.at("twice"), data.at("out1"), values * sizeof(float));
    });
  };
  run(0, 0);
  BOOST_TEST(data.get("out0") == taken(0), boost::test_tools::per_element());
  // Nothing waits for the device between these.
  run(2, 0);
  run(0, 1);
  run(1, 2, 2);
  BOOST_TEST(data.get("out0") == taken(2), boost::test_tools::per_element());
  BOOST_TEST(data.get("out1") == taken(0), boost::test_tools::per_element());
  BOOST_TEST(data.get("out2") == taken(1, 2), boost::test_tools::per_element());
  BOOST_TEST(data.get("twice") == taken(0), boost::test_tools::per_element());
  run(1, 1);
  BOOST_TEST(data.get("twice") == taken(1), boost::test_tools::per_element());  // after the rows, and not before
  BOOST_TEST(as_they_are == 2);
}

BOOST_AUTO_TEST_CASE(work_that_cannot_be_recorded_is_done_all_the_same, test::on_gpu()) {
  const train::cuda::current_device current(test::first_gpu().ordinal());
  for (const char* call :
       {"cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphGetRootNodes", "cudaGraphInstantiateWithFlags"})
    // Once, so that the second call records it; and always, so that it is tried three times.
    for (const auto& [times, expected_calls] : {std::pair{1, 4}, std::pair{1000, 8}}) {
      BOOST_TEST_CONTEXT(call << ", " << times) {
        three_inputs data(std::make_shared<failing_call>(call, times));
        train::cuda::replayed_work replayed;
        int as_they_are = 0;
        for (int n = 0; n < 5; ++n) {
          const int input = n % 3;
          train::cuda::take_launch<float> take(data.intake_of(input, 0));
          replayed.run(data.stream, take.params(), [&] {
            ++as_they_are;
            gpu::copy(data.stream, data.at("twice"), data.at("out0"), values * sizeof(float));
          });
          BOOST_TEST(data.get("out0") == taken(input), boost::test_tools::per_element());
          BOOST_TEST(data.get("twice") == taken(input), boost::test_tools::per_element());
        }
        // Where no capture begins, the work of it is not asked for: the three attempts cost nothing.
        const int not_captured = std::string_view(call) != "cudaStreamBeginCapture" ? 0 : times == 1 ? 1 : 3;
        BOOST_TEST(as_they_are == expected_calls - not_captured);
      }
    }
}

BOOST_AUTO_TEST_CASE(work_that_fails_while_it_is_recorded_is_done_all_the_same, test::on_gpu()) {
  const train::cuda::current_device current(test::first_gpu().ordinal());
  three_inputs data;
  train::cuda::replayed_work replayed;
  int as_they_are = 0;
  for (int n = 0; n < 3; ++n) {
    train::cuda::take_launch<float> take(data.intake_of(n, 0));
    replayed.run(data.stream, take.params(), [&] {
      gpu::copy(data.stream, data.at("twice"), data.at("out0"), values * sizeof(float));
      if (++as_they_are == 2) throw gpu::error("of a recording");
    });
    BOOST_TEST(data.get("twice") == taken(n), boost::test_tools::per_element());
  }
  BOOST_TEST(as_they_are == 4);  // done, not recorded; done, recorded; replayed
}

BOOST_AUTO_TEST_CASE(an_error_before_or_within_the_work_is_told, test::on_gpu()) {
  const train::cuda::current_device current(test::first_gpu().ordinal());
  for (const char* call : {"cudaStreamIsCapturing", "cudaLaunchKernel"}) {
    three_inputs data(std::make_shared<failing_call>(call, 1));
    train::cuda::replayed_work replayed;
    train::cuda::take_launch<float> take(data.intake_of(0, 0));
    bool worked = false;
    BOOST_CHECK_THROW(replayed.run(data.stream, take.params(), [&] { worked = true; }), gpu::error);
    BOOST_TEST(!worked);
  }
}

BOOST_AUTO_TEST_SUITE_END()
