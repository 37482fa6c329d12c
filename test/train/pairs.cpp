#include "pairs.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

using namespace penstock;
using penstock::test::all_joins;
using penstock::test::host_stage;
using penstock::test::options_for;
using penstock::test::pairs;
using train::join;

namespace {

template <class T>
double loss_sum(host_stage<T>& s, const train::batch_rows& rows) {
  s.stage.reset();
  s.stage.evaluate(rows);
  return s.stage.progress().running.loss_sum;
}

/// Of all parameters, against central differences.
void check_gradients(const train::stage_options& options, const train::batch_rows& rows) {
  BOOST_TEST_CONTEXT(train::to_text(options.model) << ", " << train::to_text(options.loss)) {
    host_stage<double> s(options);
    s.stage.accumulate(rows);
    const std::vector<double> gradients = test::copy_of(s.gradients());
    double largest = 0;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      double& p = s.parameters()[i];
      const double kept = p;
      p = kept + 1e-6;
      const double above = loss_sum(s, rows);
      p = kept - 1e-6;
      const double below = loss_sum(s, rows);
      p = kept;
      BOOST_TEST(std::abs(gradients[i] - (above - below) / 2e-6) < 2e-7 * std::max(1.0, std::abs(gradients[i])));
      largest = std::max(largest, std::abs(gradients[i]));
    }
    BOOST_TEST(largest > 1e-3);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pairs_of_inputs)

BOOST_AUTO_TEST_CASE(gradients_are_the_central_differences_for_every_join) {
  const pairs<double> data(7, 5);
  for (const join kind : all_joins)
    for (const bool shared : {true, false})
      for (const std::vector<std::size_t>& head : {std::vector<std::size_t>{}, {4}})
        check_gradients(options_for({.join = kind, .shared = shared, .embedding = 3, .head = head}, 7),
                        data.rows(0, 7));
}

BOOST_AUTO_TEST_CASE(so_are_those_of_towers_with_layer_norm_and_of_each_loss) {
  const pairs<double> data(7, 5);
  for (const bool shared : {true, false}) {
    train::stage_options options = options_for({.join = join::product, .shared = shared, .embedding = 3}, 7);
    options.model.layer_norm = true;
    options.model.activation = train::activation::gelu;
    check_gradients(options, data.rows(0, 7));
    options = options_for({.join = join::difference, .shared = shared, .embedding = 1}, 7);
    check_gradients(options, data.rows(0, 7));
    options.loss = train::pairwise_ranking{.margin = 0.7};
    check_gradients(options, data.rows(0, 7));
    options.loss = train::binary_cross_entropy{.positive_weight = 2};
    check_gradients(options, data.rows(0, 7));
  }
}

BOOST_AUTO_TEST_CASE(the_ranking_loss_is_one_of_the_lead) {
  // A model that passes the difference of its only inputs on: the score of a row is its input.
  const std::vector<double> a{2, -1, 0.25}, b{1.5, 1, 0.25};
  const std::vector<std::int32_t> better{1, 1, 0};
  for (const double margin : {0.0, 1.0}) {
    host_stage<double> s(
        {.model = {.inputs = 1, .hidden = {}, .outputs = 1, .pair = {.join = join::difference, .embedding = 1}},
         .loss = train::pairwise_ranking{.margin = margin},
         .rows = 3});
    s.parameters()[0] = 1, s.parameters()[1] = 7;  // a bias of both scores does not matter
    s.stage.accumulate({.x = a.data(), .x2 = b.data(), .targets = better.data(), .rows = 3, .valid_rows = 3});
    const train::metrics found = s.stage.progress().running;
    const double leads[] = {0.5, -2, 0};
    double expected = 0;
    for (const double lead : leads) expected += margin > 0 ? std::max(0.0, margin - lead) : std::log1p(std::exp(-lead));
    BOOST_TEST(std::abs(found.loss_sum - expected) < 1e-14);
    BOOST_TEST(found.correct == 2u);  // in front by nothing is not in front: the second is taken for the better one
  }
}

BOOST_AUTO_TEST_CASE(shared_towers_and_a_difference_turn_with_the_order_of_the_two) {
  const pairs<double> data(9, 5);
  host_stage<double> s(options_for({.join = join::difference, .embedding = 1}, 9));
  const std::string outputs = "train: activations of layer 2";
  const train::batch_rows rows = data.rows(0, 9);
  s.stage.evaluate(rows);
  const std::vector<double> forward = test::copy_of(s.item(outputs.c_str()));
  train::batch_rows swapped = rows;
  std::swap(swapped.x, swapped.x2);
  s.stage.evaluate(swapped);
  for (std::size_t n = 0; n < 9; ++n) BOOST_TEST(s.item(outputs.c_str())[n] == -forward[n]);
}

BOOST_AUTO_TEST_CASE(any_split_of_the_rows_gives_the_gradient_of_all_dropout_included) {
  const pairs<double> data(40, 5);
  for (const bool shared : {true, false}) {
    train::stage_options options = options_for({.join = join::concatenation, .shared = shared, .embedding = 3}, 40);
    options.model.dropout = 0.3;
    host_stage<double> whole(options), parts(options);
    whole.stage.accumulate(data.rows(0, 40));
    for (const auto& [first, count] : {std::pair{0u, 16u}, {16u, 1u}, {17u, 23u}})
      parts.stage.accumulate(data.rows(first, count));
    for (std::size_t i = 0; i < whole.gradients().size(); ++i)
      BOOST_TEST(std::abs(whole.gradients()[i] - parts.gradients()[i]) < 1e-13);
  }
}

BOOST_AUTO_TEST_CASE(both_sides_drop_values_of_their_own) {
  // The same rows on both sides of shared towers: without dropout the difference is 0.
  pairs<double> data(20, 5);
  data.second = data.first;
  train::stage_options options = options_for({.join = join::difference, .embedding = 1}, 20);
  options.model.dropout = 0.5;
  host_stage<double> s(options);
  s.stage.evaluate(data.rows(0, 20));
  for (const double value : s.item("train: activations of layer 3").first(20)) BOOST_TEST(value == 0.0);
  s.stage.accumulate(data.rows(0, 20));
  double largest = 0;  // the gradient of the bias of the score is the sum over both sides: 0 only by chance
  for (const double value : s.gradients()) largest = std::max(largest, std::abs(value));
  BOOST_TEST(largest > 1e-3);
}

BOOST_AUTO_TEST_CASE(the_same_bits_whatever_the_threads_the_recomputation_and_the_offload) {
  const pairs<float> data(64, 5);
  for (const bool shared : {true, false}) {
    train::stage_options options = options_for({.join = join::product, .shared = shared, .embedding = 8}, 64);
    options.model.hidden = {33, 20};
    options.model.layer_norm = true;
    options.threads = 1;
    const auto gradients = [&](const train::stage_options& o) {
      host_stage<float> s(o);
      s.stage.accumulate(data.rows(0, 64));
      s.stage.accumulate(data.rows(0, 32));
      return test::copy_of(s.gradients());
    };
    const std::vector<float> expected = gradients(options);
    train::stage_options other = options;
    other.threads = 3;
    BOOST_TEST(test::same_bits<float>(gradients(other), expected));
    other = options;
    other.recompute_layers = 3;
    BOOST_TEST(test::same_bits<float>(gradients(other), expected));
    other.offload.activations = true;
    BOOST_TEST(test::same_bits<float>(gradients(other), expected));
  }
}

BOOST_AUTO_TEST_CASE(of_two_inputs_at_fault_the_one_of_the_first_row_is_noted) {
  constexpr std::uint64_t second = train::progress::of_second_input;
  pairs<float> data(64, 5);
  data.second.x[20 * 5 + 1] = data.second.x[40 * 5] = std::numeric_limits<float>::infinity();
  data.first.x[30 * 5 + 4] = data.first.x[40 * 5 + 2] = std::numeric_limits<float>::quiet_NaN();
  const auto noted = [&](const auto& take) {
    host_stage<float> s(options_for({.join = join::difference, .embedding = 4}, 64));
    take(s.stage);
    return s.stage.progress().bad_input;
  };
  BOOST_TEST(noted([&](train::stage& s) { s.accumulate(data.rows(0, 64)); }) == 20 + second);
  BOOST_TEST(noted([&](train::stage& s) { s.evaluate(data.rows(0, 64)); }) == 20 + second);
  BOOST_TEST(noted([&](train::stage& s) { s.accumulate(data.rows(21, 43)); }) == 30u);
  BOOST_TEST(noted([&](train::stage& s) { s.accumulate(data.rows(35, 29)); }) == 40u);
  BOOST_TEST(noted([&](train::stage& s) {
               s.accumulate(data.rows(16, 8));
               s.accumulate(data.rows(24, 8));
             }) == 20 + second);
  BOOST_TEST(noted([&](train::stage& s) {
               s.observe(data.first.x.data(), 64, 64);
               s.observe(data.second.x.data(), 64, 64, second);
             }) == 20 + second);
  BOOST_TEST(noted([&](train::stage& s) {
               s.observe(data.second.row(16), 8, 8, 16 + second);
               s.observe(data.first.row(24), 8, 8, 24);
             }) == 20 + second);
  // So it is where a begun step has one.
  for (const std::uint64_t begun : {std::uint64_t{20}, 20 + second, 40 + second, train::progress::no_row}) {
    const auto go_on = [&](train::stage& s) {
      s.go_on({.batches = 1, .rows = 16, .weight = 16, .bad_input = begun});
      BOOST_TEST(s.latest_progress().bad_input == begun);
    };
    BOOST_TEST(noted(go_on) == begun);
    BOOST_TEST(noted([&](train::stage& s) {
                 go_on(s);
                 s.accumulate(data.rows(35, 29));
                 const std::uint64_t both = s.begun().bad_input;
                 BOOST_TEST(both == s.latest_progress().bad_input);
               }) == ((begun & ~second) == 20 ? begun : 40));
  }
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_together_is_refused) {
  const gpu::device host = gpu::device::host();
  BOOST_CHECK_THROW(train::plan(host, options_for({.head = {4}}, 7)), std::invalid_argument);
  BOOST_CHECK_THROW(train::plan(host, options_for({.join = join::dot, .embedding = 0}, 7)), std::invalid_argument);
  BOOST_CHECK_THROW(train::plan(host, options_for({.join = join::dot, .head = {0}}, 7)), std::invalid_argument);
  BOOST_CHECK_THROW(train::parse_join("sum"), std::invalid_argument);
  BOOST_TEST((train::parse_join("concat") == join::concatenation));
  const pairs<double> data(7, 5);
  host_stage<double> two(options_for({.join = join::dot}, 7)), one(options_for({}, 7));
  train::batch_rows rows = data.rows(0, 7);
  BOOST_CHECK_THROW(one.stage.accumulate(rows), std::invalid_argument);
  rows.x2 = nullptr;
  BOOST_CHECK_THROW(two.stage.accumulate(rows), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(the_text_of_a_model_says_what_is_joined) {
  const train::mlp_options ranking{
      .inputs = 9, .hidden = {8}, .outputs = 1, .pair = {.join = join::difference, .embedding = 1}};
  BOOST_TEST(train::to_text(ranking) == "two shared towers 9-8-1, difference 1, relu");
  BOOST_TEST(train::parameters(ranking) == (9 + 1) * 8 + (8 + 1) * 1u);
  const train::mlp_options other{.inputs = 9,
                                 .hidden = {8},
                                 .outputs = 3,
                                 .pair = {.join = join::concatenation, .shared = false, .embedding = 4, .head = {5}}};
  BOOST_TEST(train::to_text(other) == "two separate towers 9-8-4, concatenation 8-5-3, relu");
  BOOST_TEST(train::parameters(other) == 2 * ((9 + 1) * 8 + (8 + 1) * 4u) + (8 + 1) * 5 + (5 + 1) * 3);
}

BOOST_AUTO_TEST_SUITE_END()
