#include "fixture.hpp"

#include <penstock/fault.hpp>

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>
#include <stdexcept>

using namespace penstock;
using penstock::test::host_stage;
using penstock::test::rows_of;

namespace {

const train::stage_options small{
    .model = {.inputs = 20, .hidden = {32, 16}, .outputs = 4}, .rows = 64, .seed = 9, .threads = 1};
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// Parameters after some steps.
std::vector<float> train_with(std::size_t threads) {
  train::stage_options options = small;
  options.threads = threads;
  const rows_of<float> data(200, 20, 4);
  host_stage<float> s(options);
  for (int pass = 0; pass < 3; ++pass)
    for (const auto& [first, count] : {std::pair{0, 64}, {64, 64}, {128, 64}, {192, 8}}) {
      s.accumulate(data, static_cast<std::size_t>(first), static_cast<std::size_t>(count));
      s.stage.update(0.01);
    }
  return test::copy_of(s.parameters());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stage)

BOOST_AUTO_TEST_CASE(the_same_run_gives_the_same_bits_with_any_number_of_threads) {
  const auto first = train_with(1);
  for (const std::size_t threads : {1u, 2u, 4u})
    BOOST_TEST(test::same_bits<float>(train_with(threads), first), "with " << threads << " threads");
}

BOOST_AUTO_TEST_CASE(weights_are_a_function_of_the_seed_and_have_the_variance_of_he) {
  train::stage_options options{.model = {.inputs = 200, .hidden = {300}, .outputs = 2}, .rows = 1, .seed = 1};
  host_stage<double> one(options), same(options);
  options.seed = 2;
  host_stage<double> other(options);
  BOOST_TEST(test::same_bits<double>(one.parameters(), same.parameters()));
  BOOST_TEST(!test::same_bits<double>(one.parameters(), other.parameters()));
  const auto weights = one.parameters().first(200 * 300);
  double sum = 0, squares = 0;
  for (const double w : weights) sum += w, squares += w * w;
  const double n = static_cast<double>(weights.size());
  BOOST_TEST(std::abs(sum / n) < 5 * std::sqrt(2.0 / 200 / n));
  BOOST_TEST(std::abs(squares / n / (2.0 / 200) - 1) < 5 * std::sqrt(2 / n));
  for (const double bias : one.parameters().subspan(200 * 300, 300)) BOOST_TEST(bias == 0.0);
}

BOOST_AUTO_TEST_CASE(a_stage_learns_what_can_be_learned) {
  rows_of<float> data(64, 20, 4);
  for (std::size_t row = 0; row < 64; ++row) data.x[row * 20 + static_cast<std::size_t>(data.labels[row])] += 4;
  host_stage<float> s(small);
  for (int step = 0; step < 60; ++step) {
    s.stage.reset();
    s.accumulate(data, 0, 64);
    s.stage.update(0.01);
  }
  const train::metrics last = s.stage.progress().running;
  BOOST_TEST(last.accuracy() == 1.0);
  BOOST_TEST(last.loss() < 0.05);
}

BOOST_AUTO_TEST_CASE(metrics_count_hits_by_the_largest_logit) {
  // One input, weights (0, 1, -1): class 1 wins for positive x, class 2 for negative x, class 0 on a tie.
  host_stage<double> s({.model = {.inputs = 1, .hidden = {}, .outputs = 3}, .rows = 4});
  const std::vector<double> weights{0, 1, -1, 0, 0, 0};
  std::copy(weights.begin(), weights.end(), s.parameters().begin());
  const std::vector<double> x{2, -2, 0, 3};
  const std::vector<std::int32_t> labels{1, 2, 0, 2};
  s.stage.evaluate(x.data(), labels.data(), 4, 4);
  BOOST_TEST(s.stage.progress().running.correct == 3u);
  BOOST_TEST(s.stage.progress().running.rows == 4u);
}

BOOST_AUTO_TEST_CASE(evaluation_changes_neither_gradients_nor_parameters) {
  const rows_of<float> data(64, 20, 4);
  host_stage<float> s(small);
  s.accumulate(data, 0, 64);
  const auto gradients = test::copy_of(s.gradients()), parameters = test::copy_of(s.parameters());
  s.stage.evaluate(data.x.data(), data.labels.data(), 64, 64);
  BOOST_TEST(test::same_bits<float>(s.gradients(), gradients));
  BOOST_TEST(test::same_bits<float>(s.parameters(), parameters));
}

BOOST_AUTO_TEST_CASE(a_step_that_is_not_finite_changes_nothing_and_its_row_is_known) {
  rows_of<float> data(64, 20, 4);
  host_stage<float> s(small);
  s.accumulate(data, 0, 64);
  s.stage.update(0.01);
  const auto parameters = test::copy_of(s.parameters());
  data.x[17 * 20 + 3] = not_a_number;
  data.x[40 * 20] = not_a_number;
  s.stage.accumulate(data.x.data(), data.labels.data(), 64, 64, 1000);
  s.stage.update(0.01);
  BOOST_TEST(s.stage.progress().bad_input == 1017u);
  const rows_of<float> good(64, 20, 4);
  s.accumulate(good, 0, 64);
  s.stage.update(0.01);
  BOOST_TEST(test::same_bits<float>(s.parameters(), parameters));
  BOOST_TEST(s.stage.progress().steps == 1u);
  BOOST_TEST(s.stage.progress().at_step.rows == 64u);
}

BOOST_AUTO_TEST_CASE(a_step_that_is_not_finite_is_skipped_and_counted_on_request) {
  train::stage_options options = small;
  options.non_finite = train::non_finite::skip;
  rows_of<float> bad(64, 20, 4, 1);
  bad.x[5] = std::numeric_limits<float>::infinity();
  const rows_of<float> good(64, 20, 4, 2);
  host_stage<float> s(options), undisturbed(options);
  for (int step = 0; step < 3; ++step) {
    s.accumulate(good, 0, 64);
    s.stage.update(0.01);
    undisturbed.accumulate(good, 0, 64);
    undisturbed.stage.update(0.01);
    s.accumulate(good, 0, 32);
    s.accumulate(bad, 0, 32);
    s.stage.update(0.01);
  }
  BOOST_TEST(test::same_bits<float>(s.parameters(), undisturbed.parameters()));
  const train::progress p = s.stage.progress();
  BOOST_TEST(p.steps == 3u);
  BOOST_TEST(p.skipped == 3u);
  BOOST_TEST(p.at_step.rows == 3 * 64u);
  BOOST_TEST(std::isfinite(p.at_step.loss_sum));
}

BOOST_AUTO_TEST_CASE(a_label_outside_the_classes_blocks_the_step_and_is_known) {
  for (const std::int32_t label : {-1, 4, 1 << 30}) {
    rows_of<float> data(64, 20, 4);
    data.labels[33] = label;
    host_stage<float> s(small);
    const auto parameters = test::copy_of(s.parameters());
    s.stage.accumulate(data.x.data(), data.labels.data(), 64, 64, 500);
    s.stage.update(0.01);
    BOOST_TEST(s.stage.progress().bad_label == 533u);
    BOOST_TEST(test::same_bits<float>(s.parameters(), parameters));
  }
}

BOOST_AUTO_TEST_CASE(a_step_of_one_batch_at_once_has_the_bits_of_its_parts) {
  const rows_of<float> data(96, 17, 4);
  for (const double dropout : {0.0, 0.3})
    for (const double clip_norm : {0.0, 0.5}) {
      const train::stage_options options{.model = {.inputs = 17, .hidden = {24, 12}, .outputs = 4, .dropout = dropout},
                                         .rows = 48,
                                         .clip_norm = clip_norm,
                                         .seed = 5};
      host_stage<float> parts(options), whole(options);
      for (int step = 0; step < 6; ++step) {
        const std::size_t first = step % 2 == 0 ? 0 : 48, valid = step == 3 ? 31 : 48;
        const double rate = 0.01 / (1 + step);
        parts.stage.accumulate(data.row(first), &data.labels[first], 48, valid, first);
        parts.stage.update(rate);
        whole.stage.step(
            {.x = data.row(first), .targets = &data.labels[first], .rows = 48, .valid_rows = valid, .first_row = first},
            rate);
      }
      BOOST_TEST(test::same_bits<float>(parts.parameters(), whole.parameters()));
      BOOST_TEST(whole.stage.progress().steps == 6u);
      BOOST_TEST(parts.stage.progress().at_step.loss_sum == whole.stage.progress().at_step.loss_sum);
    }
}

BOOST_AUTO_TEST_CASE(discarded_rows_leave_no_trace) {
  const rows_of<float> data(64, 20, 4, 1), other(64, 20, 4, 2);
  host_stage<float> s(small), undisturbed(small);
  s.accumulate(other, 0, 64);
  s.stage.discard();
  for (auto* each : {&s, &undisturbed}) {
    each->accumulate(data, 0, 64);
    each->stage.update(0.01);
  }
  BOOST_TEST(test::same_bits<float>(s.parameters(), undisturbed.parameters()));
  BOOST_TEST(s.stage.progress().running.rows == 64u);
}

BOOST_AUTO_TEST_CASE(inputs_are_normalised_by_mean_and_deviation_and_constant_ones_stay) {
  rows_of<double> data(8, 3, 2);
  const train::stage_options options{.model = {.inputs = 3, .hidden = {}, .outputs = 2}, .rows = 8, .seed = 3};
  host_stage<double> raw(options), normalising(options);
  normalising.stage.set_normalisation({{1, 2, 3}, {0.5, 4, 0}});
  normalising.accumulate(data, 0, 8);
  for (std::size_t row = 0; row < 8; ++row) {
    data.x[row * 3] = (data.x[row * 3] - 1) / 0.5;
    data.x[row * 3 + 1] = (data.x[row * 3 + 1] - 2) / 4;
    data.x[row * 3 + 2] -= 3;
  }
  raw.accumulate(data, 0, 8);
  for (std::size_t i = 0; i < raw.gradients().size(); ++i)
    BOOST_TEST(std::abs(raw.gradients()[i] - normalising.gradients()[i]) < 1e-12);
}

BOOST_AUTO_TEST_CASE(observed_statistics_are_those_of_all_rows_whatever_the_batches) {
  // Far from zero, where sums of squares would lose everything.
  rows_of<double> data(150, 3, 2);
  for (std::size_t row = 0; row < 150; ++row) {
    data.x[row * 3] += 1e8;
    data.x[row * 3 + 1] = 7;
  }
  host_stage<double> s({.model = {.inputs = 3, .hidden = {}, .outputs = 2}, .rows = 64});
  for (const auto& [first, count] : {std::pair{0u, 64u}, {64u, 1u}, {65u, 64u}, {129u, 21u}})
    s.stage.observe(data.row(first), count, count, first);
  const train::input_statistics observed = s.stage.observed();
  for (std::size_t j = 0; j < 3; ++j) {
    long double mean = 0, squares = 0;
    for (std::size_t row = 0; row < 150; ++row) mean += data.x[row * 3 + j] / 150.0L;
    for (std::size_t row = 0; row < 150; ++row) squares += (data.x[row * 3 + j] - mean) * (data.x[row * 3 + j] - mean);
    BOOST_TEST(std::abs(observed.mean[j] - static_cast<double>(mean)) < 1e-7);
    BOOST_TEST(std::abs(observed.deviation[j] - static_cast<double>(std::sqrt(squares / 150))) < 1e-8);
  }
  BOOST_TEST(observed.deviation[1] == 0.0);
  s.stage.forget();
  data.x[5 * 3 + 2] = std::numeric_limits<double>::infinity();
  s.stage.observe(data.x.data(), 10, 9, 40);
  BOOST_TEST(s.stage.progress().bad_input == 45u);
  BOOST_TEST(std::isfinite(s.stage.observed().mean[2]));
}

BOOST_AUTO_TEST_CASE(a_constant_column_has_no_deviation_whatever_its_value) {
  // Ten times 0.1 do not add up to 1 in float64.
  for (const double value : {0.1, -1e9 / 3, 1e-300}) {
    const std::vector<double> x(64, value);
    host_stage<double> s({.model = {.inputs = 1, .hidden = {}, .outputs = 2}, .rows = 64});
    for (const std::size_t count : {10u, 64u, 7u}) s.stage.observe(x.data(), count, count);
    BOOST_TEST(s.stage.observed().mean[0] == value);
    BOOST_TEST(s.stage.observed().deviation[0] == 0.0);
  }
}

BOOST_AUTO_TEST_CASE(masked_rows_are_left_out_of_the_statistics_of_the_inputs) {
  std::vector<double> x{1, 10, std::numeric_limits<double>::quiet_NaN(), 99, 3, 30, 5, 20};
  const std::vector<double> weights{1, 0, 0.5, 2};
  host_stage<double> s({.model = {.inputs = 2, .hidden = {}, .outputs = 2}, .rows = 4});
  s.stage.observe(x.data(), 4, 4, 0, weights.data());
  BOOST_TEST(s.stage.progress().bad_input == train::progress::no_row);
  BOOST_TEST(s.stage.observed().mean[0] == 3.0);  // of 1, 3, 5: weights above 0 do not matter here
  BOOST_TEST(s.stage.observed().mean[1] == 20.0);
  BOOST_TEST(std::abs(s.stage.observed().deviation[0] - std::sqrt(8.0 / 3)) < 1e-15);
}

BOOST_AUTO_TEST_CASE(state_is_read_and_written_in_pieces) {
  host_stage<float> s(small), other(small);
  const rows_of<float> data(64, 20, 4);
  s.accumulate(data, 0, 64);
  s.stage.update(0.01);
  BOOST_TEST(s.stage.state().size() == 3 * 6u);
  BOOST_TEST(s.stage.state()[2].path == "/model/layer1/weight");
  BOOST_TEST((s.stage.state()[2].shape == std::vector<std::uint64_t>{16, 32}));
  for (std::size_t n = 0; n < s.stage.state().size(); ++n) {
    const train::state_item& item = s.stage.state()[n];
    std::size_t bytes = sizeof(float);
    for (const auto extent : item.shape) bytes *= extent;
    std::vector<std::byte> host(bytes);
    s.stage.read_state(item, 0, host.data(), bytes / 2);
    s.stage.read_state(item, bytes / 2, host.data() + bytes / 2, bytes - bytes / 2);
    other.stage.write_state(other.stage.state()[n], 0, host.data(), bytes);
  }
  other.stage.set_steps(1);
  for (auto* each : {&s, &other}) {
    each->accumulate(data, 0, 64);
    each->stage.update(0.01);
  }
  BOOST_TEST(test::same_bits<float>(s.parameters(), other.parameters()));
}

BOOST_AUTO_TEST_CASE(the_plan_is_what_the_model_optimizer_and_rows_need) {
  // 784-512-256-10: 535,818 parameters of 4 bytes, four of each with AdamW.
  const train::stage_options options{.model = {.inputs = 784, .hidden = {512, 256}, .outputs = 10}, .rows = 256};
  BOOST_TEST(train::parameters(options.model) == 535818u);
  const gpu::ledger ledger = train::plan(gpu::device::host(), options);
  std::size_t of_parameters = 0, of_rows = 0;
  for (const auto& item : ledger.items()) {
    if (item.kind != gpu::memory_kind::device) continue;
    if (item.bytes == 535818u * 4)
      of_parameters += item.bytes;
    else if (item.bytes >= 256u * 4)
      of_rows += item.bytes;
  }
  BOOST_TEST(of_parameters == 4 * 535818u * 4);
  // Input, three outputs, two gradients of outputs, scores of 16 bytes; mean, scale and three sums of inputs.
  BOOST_TEST(of_rows == 4u * (256 * (784 + 512 + 256 + 10 + 512 + 256 + 4) + 2 * 784) + 3 * 784 * 8);
  BOOST_TEST(ledger.total(gpu::memory_kind::device) < 11u << 20);
}

BOOST_AUTO_TEST_CASE(wrong_options_and_rows_are_refused) {
  const auto refused = [](train::stage_options o) {
    BOOST_CHECK_THROW(train::plan(gpu::device::host(), o), std::invalid_argument);
  };
  refused({.model = {.inputs = 0, .outputs = 3}});
  refused({.model = {.inputs = 3, .outputs = 1}});
  refused({.model = {.inputs = 3, .hidden = {4, 0}, .outputs = 3}});
  refused({.model = {.inputs = 3, .outputs = 3}, .rows = 0});
  refused({.model = {.inputs = 3, .outputs = 3}, .compute = type::int32});
  refused({.model = {.inputs = 3, .outputs = 3}, .precision = train::precision::tf32});  // the host has none
  host_stage<float> s(small);
  const rows_of<float> data(65, 20, 4);
  BOOST_CHECK_THROW(s.accumulate(data, 0, 65), std::invalid_argument);
  BOOST_CHECK_THROW(s.stage.accumulate(data.x.data(), data.labels.data(), 4, 5), std::invalid_argument);
  BOOST_CHECK_THROW(s.stage.accumulate(nullptr, data.labels.data(), 4, 4), std::invalid_argument);
  BOOST_CHECK_THROW(s.stage.set_normalisation({{1}, {1}}), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
