#include "cuda/replayed_work.hpp"

#include "cuda/check.hpp"
#include "cuda/kernels.hpp"
#include "gpu.hpp"

#include <penstock/gpu/memory.hpp>
#include <penstock/gpu/stream.hpp>

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace penstock;

namespace {

constexpr std::size_t rows = 3, columns = 5, values = rows * columns;

/// Three inputs of constant values on the device, and a place for what is taken of each.
struct three_inputs {
  gpu::stream stream{test::first_gpu()};
  gpu::memory memory{test::first_gpu(), [] {
                       gpu::ledger all;
                       for (const char* name : {"x0", "x1", "x2", "out0", "out1", "out2", "mean", "scale", "twice"})
                         all.add(gpu::memory_kind::device, name, values * sizeof(float));
                       all.add(gpu::memory_kind::device, "state", sizeof(train::step_state));
                       return all;
                     }()};

  three_inputs() {
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
    replayed.run(data.stream.ref().native(), take.params(), [&] {
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

BOOST_AUTO_TEST_SUITE_END()
