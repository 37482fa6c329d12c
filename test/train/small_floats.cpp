#include "device_stage.hpp"
#include "element.hpp"
#include "fixture.hpp"
#include "gpu.hpp"
#include "host/products.hpp"
#include "training_file.hpp"

#include <penstock/train/error.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>

using namespace penstock;
using penstock::test::host_stage;
using penstock::test::rows_of;
using train::bfloat16;
using train::float16;

namespace {

float rounded(float x) { return bfloat16(x); }

std::vector<float> gradients(const train::stage_options& options, const rows_of<float>& data, std::size_t rows) {
  host_stage<float> s(options);
  if (options.precision == train::precision::fp16) s.stage.set_loss_scale(16384);
  s.accumulate(data, 0, rows);
  return test::copy_of(s.gradients());
}

template <class S, class C>
double worst_error(const train::product& p, double unit) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<S> a(p.rows * p.depth), b(p.depth * p.columns);
  std::vector<C> c(p.rows * p.columns), bias(p.columns);
  for (auto* factor : {&a, &b})
    for (auto& value : *factor) value = S(uniform(random));
  for (auto* values : {&c, &bias})
    for (auto& value : *values) value = static_cast<C>(uniform(random));
  const std::vector<C> before = c;
  train::host::multiply(p, a.data(), b.data(), c.data(), bias.data());
  double worst = 0;
  for (std::size_t i = 0; i < p.rows; ++i)
    for (std::size_t j = 0; j < p.columns; ++j) {
      double sum = p.bias ? static_cast<double>(bias[j]) : 0.0;
      for (std::size_t k = 0; k < p.depth; ++k)
        sum += static_cast<double>(p.transpose_a ? a[k * p.rows + i] : a[i * p.depth + k]) *
               static_cast<double>(p.transpose_b ? b[j * p.depth + k] : b[k * p.columns + j]);
      if (p.activation == train::activation::relu) sum = std::max(sum, 0.0);
      if (p.accumulate) sum += static_cast<double>(before[i * p.columns + j]);
      const double error = std::abs(static_cast<double>(c[i * p.columns + j]) - sum);
      worst = std::max(worst, error - unit * std::abs(sum));
    }
  return worst;
}

/// A clean step before the doubling to 2^24, and one after 1,999 more at that. Inputs, targets and biases are 0, and so
/// is the gradient: no scale makes it overflow.
void check_largest_scale(gpu::device device) {
  rows_of<float> data(2, 2, 2);
  std::fill(data.x.begin(), data.x.end(), 0.0f);
  train::stage_options options{.model = {.inputs = 2, .hidden = {}, .outputs = 1},
                               .loss = train::mean_squared_error{},
                               .targets = train::target::values,
                               .rows = 2};
  options.precision = train::precision::fp16;
  test::device_stage<float> s(device, options, data, {0, 0}, {1, 1});
  for (const double scale : {0x1p23, 0x1p24}) {
    s.stage.set_loss_scale(scale, 1999);
    s.stage.accumulate(s.weighted_rows());
    s.stage.update(0.001);
    const train::progress p = s.stage.progress();
    BOOST_TEST(p.loss_scale == 0x1p24);
    BOOST_TEST(p.clean_steps == 0u);
    BOOST_TEST(p.skipped == 0u);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(small_floats)

BOOST_AUTO_TEST_CASE(values_round_to_the_nearest_with_seven_bits_of_fraction_and_ties_to_even) {
  BOOST_TEST(rounded(1 + 0x1p-8f) == 1.0f);
  BOOST_TEST(rounded(1 + 0x3p-8f) == 1 + 0x1p-6f);
  BOOST_TEST(rounded(1 + 0x1.01p-8f) == 1 + 0x1p-7f);
  BOOST_TEST(rounded(-3.14159265f) == -3.140625f);
  BOOST_TEST(rounded(std::numeric_limits<float>::max()) == std::numeric_limits<float>::infinity());
  BOOST_TEST(std::isnan(rounded(std::numeric_limits<float>::quiet_NaN())));
}

BOOST_AUTO_TEST_CASE(a_float16_rounds_to_ten_bits_with_subnormals_and_overflows_from_65520) {
  const auto half = [](float x) { return static_cast<float>(float16(x)); };
  BOOST_TEST(half(1 + 0x1p-11f) == 1.0f);
  BOOST_TEST(half(1 + 0x3p-11f) == 1 + 0x1p-9f);
  BOOST_TEST(half(-3.14159265f) == -3.140625f);
  BOOST_TEST(half(65504) == 65504.0f);
  BOOST_TEST(half(65519) == 65504.0f);
  BOOST_TEST(half(65520) == std::numeric_limits<float>::infinity());
  BOOST_TEST(half(0x1p-24f) == 0x1p-24f);
  BOOST_TEST(half(0x1p-25f) == 0.0f);
  BOOST_TEST(half(0x3p-25f) == 0x1p-23f);
  BOOST_TEST(half(-0x1.004p-14f) == -0x1.004p-14f);
  BOOST_TEST(std::isnan(half(std::numeric_limits<float>::quiet_NaN())));
}

BOOST_AUTO_TEST_CASE(products_are_summed_in_float32_and_rounded_once) {
  for (const auto& [rows, columns, depth] : {std::tuple{1u, 1u, 1u}, {65u, 130u, 200u}, {7u, 64u, 64u}})
    for (int form = 0; form < 4; ++form) {
      train::product p{.rows = rows,
                       .columns = columns,
                       .depth = depth,
                       .transpose_a = (form & 1) != 0,
                       .transpose_b = (form & 2) != 0};
      p.gradient = p.accumulate = true;
      BOOST_TEST((worst_error<bfloat16, float>(p, 0)) < 1e-6 * depth);
      BOOST_TEST((worst_error<float16, float>(p, 0)) < 1e-6 * depth);
      p.gradient = p.accumulate = false;
      p.bias = true;
      p.activation = train::activation::relu;
      BOOST_TEST((worst_error<bfloat16, bfloat16>(p, 0x1p-8)) < 1e-6 * depth);
      BOOST_TEST((worst_error<float16, float16>(p, 0x1p-11)) < 1e-6 * depth);
    }
}

BOOST_AUTO_TEST_CASE(gradients_are_near_those_of_float32_and_not_the_same) {
  const rows_of<float> data(64, 40, 5);
  train::stage_options options{.model = {.inputs = 40, .hidden = {64, 32}, .outputs = 5, .layer_norm = true},
                               .rows = 64};
  const auto exact = gradients(options, data, 64);
  for (const auto precision : {train::precision::bf16, train::precision::fp16}) {
    options.precision = precision;
    const auto found = gradients(options, data, 64);
    const double scale = precision == train::precision::fp16 ? 16384 : 1;
    double worst = 0, largest = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      worst = std::max(worst, std::abs(static_cast<double>(found[i]) / scale - exact[i]));
      largest = std::max(largest, static_cast<double>(std::abs(exact[i])));
    }
    BOOST_TEST(worst > 1e-6 * largest);
    BOOST_TEST(worst < (precision == train::precision::fp16 ? 0.01 : 0.05) * largest);
  }
}

BOOST_AUTO_TEST_CASE(small_steps_add_up_in_the_weights_which_stay_float32) {
  // 100 steps of 1e-5 on weights of size 1 are far below bfloat16's spacing of 1/128 there.
  train::stage_options options{.model = {.inputs = 1, .hidden = {}, .outputs = 1},
                               .loss = train::mean_squared_error{},
                               .targets = train::target::values,
                               .optimizer = train::sgd{.momentum = 0},
                               .rows = 1};
  options.precision = train::precision::bf16;
  host_stage<float> s(options);
  const float one = 1, x = 1, target = 0.5f;
  for (const auto& item : s.stage.state())
    s.stage.write_state(item, 0, reinterpret_cast<const std::byte*>(&one), sizeof one);
  for (int step = 0; step < 100; ++step) {
    s.stage.accumulate(&x, &target, 1, 1);
    s.stage.update(1e-5);
  }
  // The output is 2 throughout, its gradient 3.
  BOOST_TEST(std::abs(s.parameters()[0] - (1 - 100 * 3e-5f)) < 1e-5f);
}

BOOST_AUTO_TEST_CASE(a_step_that_overflows_halves_the_scale_and_changes_nothing) {
  const rows_of<float> data(64, 8, 3);
  train::stage_options options{.model = {.inputs = 8, .hidden = {16}, .outputs = 3}, .rows = 64};
  options.precision = train::precision::fp16;
  host_stage<float> s(options);
  BOOST_TEST(s.stage.progress().loss_scale == 65536.0);
  s.accumulate(data, 0, 64);
  s.stage.update(0.01);
  s.stage.set_loss_scale(0x1p24);  // the gradient of one row alone is beyond 65504
  const auto bits = [&] {
    std::vector<float> all;
    for (const char* name : {"train: parameters", "train: first moments", "train: second moments"}) {
      const auto item = s.item(name);
      all.insert(all.end(), item.begin(), item.end());
    }
    return all;
  };
  const auto before = bits();
  const train::progress start = s.stage.progress();
  s.accumulate(data, 0, 64);
  s.stage.update(0.01);
  const train::progress after = s.stage.progress();
  BOOST_TEST(after.loss_scale == 0x1p23);
  BOOST_TEST(after.steps == start.steps);
  BOOST_TEST(after.skipped == start.skipped + 1);
  BOOST_TEST(after.bad_loss == train::progress::no_row);
  BOOST_TEST(test::same_bits<float>(bits(), before));
}

// The output is 0, its target a million: a loss of 1e12, and a gradient of -2e6 where float16 ends at 65504.
BOOST_AUTO_TEST_CASE(a_gradient_that_overflows_at_every_scale_is_no_loss_that_is_not_finite) {
  for (const auto policy : {train::non_finite::fail, train::non_finite::skip}) {
    train::stage_options options{.model = {.inputs = 1, .hidden = {}, .outputs = 1},
                                 .loss = train::mean_squared_error{},
                                 .targets = train::target::values,
                                 .rows = 1,
                                 .non_finite = policy};
    options.precision = train::precision::fp16;
    host_stage<float> s(options);
    const float zero = 0, x = 1, target = 1e6f;
    for (const auto& item : s.stage.state())
      s.stage.write_state(item, 0, reinterpret_cast<const std::byte*>(&zero), sizeof zero);
    s.stage.set_loss_scale(2);
    for (const double expected : {1.0, 1.0}) {  // halved once; at 1 it is the step's fault
      s.stage.accumulate(&x, &target, 1, 1, 7);
      s.stage.update(0.1);
      BOOST_TEST(s.stage.progress().loss_scale == expected);
    }
    const train::progress p = s.stage.progress();
    const bool skips = policy == train::non_finite::skip;
    BOOST_TEST(p.bad_gradient == (skips ? train::progress::no_row : 7u));
    BOOST_TEST(p.bad_loss == train::progress::no_row);
    BOOST_TEST(p.skipped == (skips ? 2u : 1u));
    BOOST_TEST(p.steps == 0u);
    const float within = 1;  // a step that could be made is made where steps are skipped, and blocked where they fail
    s.stage.accumulate(&x, &within, 1, 1, 8);
    s.stage.update(0.1);
    BOOST_TEST(s.stage.progress().steps == (skips ? 1u : 0u));
  }
}

BOOST_AUTO_TEST_CASE(two_thousand_steps_without_overflow_double_the_scale) {
  const rows_of<float> data(2, 2, 2);
  train::stage_options options{.model = {.inputs = 2, .hidden = {}, .outputs = 2}, .rows = 2};
  options.precision = train::precision::fp16;
  host_stage<float> s(options);
  s.stage.set_loss_scale(8, 1997);
  for (const double expected : {8.0, 8.0, 16.0}) {
    s.accumulate(data, 0, 2);
    s.stage.update(0.001);
    BOOST_TEST(s.stage.progress().loss_scale == expected);
  }
  BOOST_TEST(s.stage.progress().clean_steps == 0u);
}

BOOST_AUTO_TEST_CASE(the_scale_is_doubled_up_to_two_to_the_24) { check_largest_scale(gpu::device::host()); }

BOOST_AUTO_TEST_CASE(the_scale_is_doubled_up_to_two_to_the_24_on_cuda_as_on_the_host, test::on_gpu()) {
  check_largest_scale(test::first_gpu());
}

BOOST_AUTO_TEST_CASE(gradients_are_unscaled_before_they_are_clipped) {
  const rows_of<float> data(16, 4, 3);
  train::stage_options options{.model = {.inputs = 4, .hidden = {}, .outputs = 3},
                               .optimizer = train::sgd{.momentum = 0},
                               .rows = 16,
                               .clip_norm = 0.01};
  options.precision = train::precision::fp16;
  host_stage<float> s(options);
  s.stage.set_loss_scale(1024);
  const auto before = test::copy_of(s.parameters());
  s.accumulate(data, 0, 16);
  s.stage.update(1);
  double squares = 0;
  for (std::size_t i = 0; i < before.size(); ++i) squares += std::pow(s.parameters()[i] - before[i], 2);
  BOOST_TEST(std::abs(std::sqrt(squares) - 0.01) < 1e-6);
}

BOOST_AUTO_TEST_CASE(the_smallest_loss_scale_is_kept_in_checkpoints_and_other_precisions_have_none) {
  const test::training_file data;
  auto options = test::small_trainer();
  test::training_run exact(data, options);
  exact.trainer.save(data.path("exact.h5"));
  options.stage.precision = train::precision::fp16;
  test::training_run saved(data, options), resumed(data, options);
  saved.trainer.stage().set_loss_scale(1, 5);
  saved.trainer.save(data.path("c.h5"));
  resumed.trainer.resume(data.path("c.h5"));
  BOOST_TEST(resumed.trainer.stage().progress().loss_scale == 1.0);
  BOOST_TEST(resumed.trainer.stage().progress().clean_steps == 5u);
  resumed.trainer.resume(data.path("exact.h5"));
  BOOST_TEST(resumed.trainer.stage().progress().loss_scale == 65536.0);
  BOOST_TEST(resumed.trainer.stage().progress().clean_steps == 0u);
}

// Inputs of about 1e5 are infinite in float16, and of 1e38 their products are in any type, though they are finite.
BOOST_AUTO_TEST_CASE(a_loss_beyond_float16_says_that_other_types_reach_further) {
  struct tried {
    train::precision precision;
    float factor;
  };
  for (const auto& [precision, factor] :
       {tried{train::precision::fp16, 1e5f}, tried{train::precision::bf16, 1e5f}, tried{train::precision::bf16, 3e37f},
        tried{train::precision::float32, 3e37f}}) {
    test::training_file data;
    for (float& value : data.x) value *= factor;
    data.write();
    auto options = test::small_trainer();
    options.stage.precision = precision;
    test::training_run run(data, options);
    std::string told;
    try {
      run.trainer.train_epoch(run.planned.training);
    } catch (const train::error& e) {
      told = e.what();
    }
    const auto tells = [&](const char* words) { return told.find(words) != std::string::npos; };
    BOOST_TEST(tells("the loss is not finite; ") == (factor > 1e6f || precision == train::precision::fp16), told);
    BOOST_TEST(
        tells("beyond fp16's range (65504): compute in bf16 or float32 (--precision), lower the learning rate") ==
            (precision == train::precision::fp16),
        told);
  }
}

BOOST_AUTO_TEST_CASE(an_update_without_rows_is_no_overflow) {
  train::stage_options options{.model = {.inputs = 8, .hidden = {16}, .outputs = 3}, .rows = 64};
  options.precision = train::precision::fp16;
  host_stage<float> s(options);
  // What lies in memory before the first pass.
  std::fill(s.gradients().begin(), s.gradients().end(), std::numeric_limits<float>::infinity());
  s.stage.update(0.01);
  BOOST_TEST(s.stage.progress().loss_scale == 65536.0);
  BOOST_TEST(s.stage.progress().skipped == 0u);
  s.accumulate(rows_of<float>(64, 8, 3), 0, 64);
  s.stage.update(0.01);
  BOOST_TEST(s.stage.progress().steps == 1u);
}

BOOST_AUTO_TEST_CASE(a_run_from_a_file_learns_and_resumes_with_the_same_bits) {
  const test::training_file data;
  for (const auto precision : {train::precision::bf16, train::precision::fp16}) {
    auto options = test::small_trainer();
    options.stage.precision = precision;
    test::training_run whole(data, options), stopped(data, options), resumed(data, options);
    train::epoch_progress last;
    for (int epoch = 0; epoch < 4; ++epoch) last = whole.trainer.train_epoch(whole.planned.training);
    BOOST_TEST(last.training.accuracy() > 0.85);
    for (int epoch = 0; epoch < 2; ++epoch) stopped.trainer.train_epoch(stopped.planned.training);
    stopped.trainer.save(data.path("c.h5"));
    resumed.trainer.resume(data.path("c.h5"));
    for (int epoch = 0; epoch < 2; ++epoch) resumed.trainer.train_epoch(resumed.planned.training);
    BOOST_TEST(test::same_bits<float>(resumed.weights(), whole.weights()));
    BOOST_TEST(resumed.trainer.stage().progress().loss_scale == whole.trainer.stage().progress().loss_scale);
  }
}

BOOST_AUTO_TEST_SUITE_END()
