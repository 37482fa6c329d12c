#include "gpu.hpp"
#include "pairs.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>
#include <memory>

using namespace penstock;
using penstock::test::all_joins;
using penstock::test::host_stage;
using penstock::test::options_for;
using penstock::test::pairs;
using train::join;

namespace {

/// A stage for pairs on any device.
template <class T>
struct pair_stage {
  gpu::stream stream;
  std::shared_ptr<gpu::memory> memory;
  train::stage stage;
  std::size_t count;

  pair_stage(gpu::device device, const train::stage_options& options, const pairs<T>& data)
      : stream(device),
        memory([&] {
          gpu::ledger all = train::plan(device, options);
          for (const char* name : {"x", "x2"}) all.add(gpu::memory_kind::device, name, data.first.x.size() * sizeof(T));
          all.add(gpu::memory_kind::device, "y", data.better.size() * sizeof(std::int32_t));
          return std::make_shared<gpu::memory>(device, all);
        }()),
        stage(stream, options, memory),
        count(train::parameters(options.model)) {
    put("x", data.first.x.data(), data.first.x.size() * sizeof(T));
    put("x2", data.second.x.data(), data.second.x.size() * sizeof(T));
    put("y", data.better.data(), data.better.size() * sizeof(std::int32_t));
    stream.synchronize();
  }
  /// Forward and backward; `swapped`: the two inputs change places.
  void accumulate(std::size_t rows, bool swapped = false) {
    stage.accumulate({.x = at(swapped ? "x2" : "x"),
                      .x2 = at(swapped ? "x" : "x2"),
                      .targets = at("y"),
                      .rows = rows,
                      .valid_rows = rows - 2});
  }
  /// Both sides.
  void observe(std::size_t rows) {
    stage.observe(at("x"), rows, rows);
    stage.observe(at("x2"), rows, rows, train::progress::of_second_input);
  }
  std::vector<T> gradients() {
    std::vector<T> values(count);
    gpu::copy(stream, values.data(), at("train: gradients"), count * sizeof(T));
    stream.synchronize();
    return values;
  }

 private:
  std::byte* at(const char* name) { return memory->at(gpu::memory_kind::device, name).data(); }
  void put(const char* name, const void* from, std::size_t bytes) { gpu::copy(stream, at(name), from, bytes); }
};

template <class T>
double distance(const std::vector<T>& a, const std::vector<T>& b) {
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::abs(double(a[i]) - double(b[i])));
    largest = std::max(largest, std::abs(double(a[i])));
  }
  return worst / largest;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pairs_on_devices)

BOOST_AUTO_TEST_CASE(bf16_comes_near_float32) {
  const pairs<float> data(64, 5);
  for (const join kind : all_joins) {
    train::stage_options options = options_for({.join = kind, .embedding = 4}, 64);
    host_stage<float> exact(options);
    options.precision = train::precision::bf16;
    host_stage<float> rounded(options);
    exact.stage.accumulate(data.rows(0, 64));
    rounded.stage.accumulate(data.rows(0, 64));
    BOOST_TEST(distance(test::copy_of(exact.gradients()), test::copy_of(rounded.gradients())) < 0.05);
  }
}

BOOST_AUTO_TEST_CASE(cuda_agrees_with_the_host, test::on_gpu()) {
  const pairs<double> data(65, 5);
  for (const join kind : all_joins)
    for (const bool shared : {true, false}) {
      train::stage_options options = options_for({.join = kind, .shared = shared, .embedding = 35, .head = {4}}, 65);
      options.model.layer_norm = true;
      options.model.dropout = 0.2;
      options.compute = type::float64;
      pair_stage<double> host(gpu::device::host(), options, data), cuda(test::first_gpu(), options, data);
      // What is replayed is given other rows each time.
      for (const bool swapped : {false, true, false, true, true}) {
        host.accumulate(65, swapped);
        cuda.accumulate(65, swapped);
      }
      BOOST_TEST(distance(host.gradients(), cuda.gradients()) < 1e-12, train::to_text(options.model));
      BOOST_TEST(std::abs(host.stage.progress().running.loss() - cuda.stage.progress().running.loss()) < 1e-12);
      options.loss = train::pairwise_ranking{.margin = 1};
      pair_stage<double> margin_host(gpu::device::host(), options, data), margin(test::first_gpu(), options, data);
      margin_host.accumulate(65);
      margin.accumulate(65);
      BOOST_TEST(distance(margin_host.gradients(), margin.gradients()) < 1e-12);
    }
}

BOOST_AUTO_TEST_CASE(cuda_notes_the_input_of_the_first_row_at_fault_of_either_side, test::on_gpu()) {
  constexpr std::uint64_t second = train::progress::of_second_input;
  const auto noted = [](std::size_t of_first, std::size_t of_second, bool observed) {
    pairs<float> data(65, 5);
    data.first.x[of_first * 5 + 4] = data.first.x[60 * 5] = std::numeric_limits<float>::quiet_NaN();
    data.second.x[of_second * 5 + 1] = data.second.x[50 * 5] = std::numeric_limits<float>::infinity();
    pair_stage<float> s(test::first_gpu(), options_for({.join = join::difference, .embedding = 4}, 65), data);
    observed ? s.observe(65) : s.accumulate(65);
    return s.stage.progress().bad_input;
  };
  for (const bool observed : {false, true}) {
    BOOST_TEST(noted(30, 20, observed) == 20 + second);
    BOOST_TEST(noted(20, 30, observed) == 20u);
    BOOST_TEST(noted(30, 30, observed) == 30u);
  }
}

/// 1,200 rows of both sides are more than one kernel sums the columns of, where 600 of one side are not.
BOOST_AUTO_TEST_CASE(shared_towers_take_both_sides_of_600_rows_at_once_on_cuda, test::on_gpu()) {
  const pairs<double> data(600, 5);
  for (const bool layer_norm : {true, false}) {  // whose gradients are sums of columns in every precision
    train::stage_options options = options_for({.join = join::difference, .embedding = 35, .head = {4}}, 600);
    options.model.layer_norm = layer_norm;
    options.compute = type::float64;
    pair_stage<double> host(gpu::device::host(), options, data), cuda(test::first_gpu(), options, data);
    for (const bool swapped : {false, true}) {  // the second pass adds
      host.accumulate(600, swapped);
      cuda.accumulate(600, swapped);
    }
    BOOST_TEST(distance(host.gradients(), cuda.gradients()) < 1e-12);
  }
}

BOOST_AUTO_TEST_CASE(so_they_do_in_every_precision, test::on_gpu()) {
  const pairs<float> data(600, 5);
  for (const auto precision : {train::precision::tf32, train::precision::bf16, train::precision::fp16}) {
    train::stage_options options = options_for({.join = join::difference, .embedding = 35}, 600);
    host_stage<float> host(options);
    options.precision = precision;
    pair_stage<float> cuda(test::first_gpu(), options, data);
    if (precision == train::precision::fp16) cuda.stage.set_loss_scale(1);
    auto rows = data.rows(0, 600);
    rows.valid_rows = 598;
    host.stage.accumulate(rows);
    cuda.accumulate(600);
    BOOST_TEST(distance(test::copy_of(host.gradients()), cuda.gradients()) < 0.05, train::name_of(precision));
  }
}

BOOST_AUTO_TEST_CASE(cuda_gives_the_same_bits_again_in_bf16, test::on_gpu()) {
  const pairs<float> data(65, 5);
  for (const bool shared : {true, false}) {
    train::stage_options options = options_for({.join = join::dot, .shared = shared, .embedding = 7}, 65);
    options.precision = train::precision::bf16;
    pair_stage<float> one(test::first_gpu(), options, data), other(test::first_gpu(), options, data);
    for (auto* each : {&one, &other})
      for (int n = 0; n < 3; ++n) each->accumulate(65);
    BOOST_TEST(test::same_bits<float>(one.gradients(), other.gradients()));
  }
}

BOOST_AUTO_TEST_SUITE_END()
