#include "fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <tuple>

using namespace penstock;
using penstock::test::host_stage;
using penstock::test::rows_of;

namespace {

constexpr std::size_t rows = 103;
const train::stage_options options{
    .model = {.inputs = 6, .hidden = {40, 30}, .outputs = 4, .dropout = 0.3}, .rows = rows, .seed = 3};

double training_loss(host_stage<double>& s, const rows_of<double>& data) {
  s.stage.reset();
  s.accumulate(data, 0, rows);
  const double loss = s.stage.progress().running.loss_sum;
  s.stage.discard();
  return loss;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(dropouts)

BOOST_AUTO_TEST_CASE(gradients_are_those_of_the_loss_with_the_same_values_dropped) {
  const rows_of<double> data(rows, 6, 4);
  host_stage<double> s(options);
  s.accumulate(data, 0, rows);
  const std::vector<double> gradients = test::copy_of(s.gradients());
  s.stage.discard();
  for (std::size_t i = 0; i < gradients.size(); i += 7) {
    double& p = s.parameters()[i];
    const double kept = p;
    p = kept + 1e-6;
    const double above = training_loss(s, data);
    p = kept - 1e-6;
    const double below = training_loss(s, data);
    p = kept;
    BOOST_TEST(std::abs(gradients[i] - (above - below) / 2e-6) < 1e-6 * std::max(1.0, std::abs(gradients[i])));
  }
}

BOOST_AUTO_TEST_CASE(the_share_that_is_dropped_is_the_probability_and_the_rest_is_scaled) {
  const rows_of<double> data(rows, 6, 4);
  host_stage<double> s(options);
  s.accumulate(data, 0, rows);
  const auto before = s.item("train: activations of layer 0"), after = s.item("train: activations of layer 1");
  std::size_t positive = 0, dropped = 0;
  for (std::size_t i = 0; i < rows * 40; ++i) {
    if (before[i] <= 0) continue;
    ++positive;
    dropped += after[i] == 0;
    if (after[i] != 0) BOOST_TEST(std::abs(after[i] - before[i] / 0.7) < 1e-14 * before[i] + 1e-15);
  }
  const double share = static_cast<double>(dropped) / static_cast<double>(positive);
  BOOST_TEST(std::abs(share - 0.3) < 5 * std::sqrt(0.21 / static_cast<double>(positive)));
}

BOOST_AUTO_TEST_CASE(any_split_of_a_step_drops_the_same_values_and_another_step_others) {
  const rows_of<double> data(rows, 6, 4);
  host_stage<double> whole(options), parts(options);
  whole.accumulate(data, 0, rows);
  for (const auto& [first, count] : {std::pair{0u, 32u}, {32u, 32u}, {64u, 32u}, {96u, 7u}})
    parts.accumulate(data, first, count);
  for (std::size_t i = 0; i < whole.gradients().size(); ++i)
    BOOST_TEST(std::abs(whole.gradients()[i] - parts.gradients()[i]) < 1e-12);
  const auto first = test::copy_of(whole.item("train: activations of layer 1"));
  whole.stage.update(0);
  whole.accumulate(data, 0, rows);
  BOOST_TEST(!test::same_bits<double>(whole.item("train: activations of layer 1"), first));
}

BOOST_AUTO_TEST_CASE(rows_without_a_number_count_on_since_the_last_update) {
  const rows_of<double> data(rows, 6, 4);
  host_stage<double> numbered(options), counted(options);
  for (int step = 0; step < 2; ++step) {
    // Padding has no numbers: 40 rows are 32 and 8.
    for (const auto& [first, count, valid] : {std::tuple{0u, 32u, 32u}, {32u, 32u, 8u}, {40u, 63u, 63u}}) {
      numbered.stage.accumulate(data.row(first), &data.labels[first], count, valid, first);
      counted.stage.accumulate(data.row(first), &data.labels[first], count, valid);
    }
    BOOST_TEST(test::same_bits<double>(counted.gradients(), numbered.gradients()));
    numbered.stage.update(0.01);
    counted.stage.update(0.01);
  }
  // What is thrown away has no numbers either.
  counted.stage.accumulate(data.row(0), data.labels.data(), 50, 50);
  counted.stage.discard();
  for (host_stage<double>* each : {&numbered, &counted})
    each->stage.step({.x = data.row(0), .targets = data.labels.data(), .rows = rows, .valid_rows = rows}, 0.01);
  BOOST_TEST(test::same_bits<double>(counted.parameters(), numbered.parameters()));
  for (host_stage<double>* each : {&numbered, &counted})
    each->stage.accumulate(data.row(0), data.labels.data(), rows, rows, 0);
  numbered.stage.discard();
  numbered.stage.accumulate(data.row(0), data.labels.data(), rows, rows);
  BOOST_TEST(test::same_bits<double>(counted.gradients(), numbered.gradients()));
}

BOOST_AUTO_TEST_CASE(the_mask_is_a_function_of_seed_step_layer_and_element_alone) {
  // Sigmoids are above 0, so that a 0 is a value that was dropped.
  train::stage_options alike = options;
  alike.model.hidden = {40, 40};
  alike.model.activation = train::activation::sigmoid;
  constexpr const char *first_layer = "train: activations of layer 1", *second_layer = "train: activations of layer 3";
  const auto mask = [&](const train::stage_options& o, unsigned of_data, int steps, const char* layer) {
    const rows_of<double> data(rows, 6, 4, of_data);
    host_stage<double> s(o);
    for (int step = 0; step < steps; ++step) {
      s.accumulate(data, 0, rows);
      s.stage.update(0.01);
    }
    s.accumulate(data, 0, rows);
    std::vector<bool> dropped;
    for (const double value : s.item(layer).first(rows * 40)) dropped.push_back(value == 0);
    return dropped;
  };
  const std::vector<bool> expected = mask(alike, 1, 0, first_layer);
  BOOST_TEST((mask(alike, 1, 0, first_layer) == expected));
  BOOST_TEST((mask(alike, 2, 0, first_layer) == expected));  // whatever the values are
  train::stage_options other_seed = alike;
  other_seed.seed = alike.seed + 1;
  // By chance 0.7^2 + 0.3^2 of two masks agree, within five deviations of the mean over so many values.
  constexpr double by_chance = 0.58;
  const double deviation = std::sqrt(by_chance * (1 - by_chance) / (rows * 40));
  for (const auto& other :
       {mask(other_seed, 1, 0, first_layer), mask(alike, 1, 1, first_layer), mask(alike, 1, 0, second_layer)}) {
    double alike_values = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) alike_values += other[i] == expected[i] ? 1 : 0;
    BOOST_TEST(std::abs(alike_values / (rows * 40) - by_chance) < 5 * deviation);
  }
}

BOOST_AUTO_TEST_CASE(evaluation_drops_nothing) {
  const rows_of<double> data(rows, 6, 4);
  train::stage_options plain = options;
  plain.model.dropout = 0;
  host_stage<double> with(options), without(plain);
  // The layers' numbers differ, and so do the initial weights: the same ones are put in.
  std::copy(without.parameters().begin(), without.parameters().end(), with.parameters().begin());
  BOOST_TEST(with.loss_sum(data, rows) == without.loss_sum(data, rows));
}

BOOST_AUTO_TEST_SUITE_END()
