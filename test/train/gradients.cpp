#include "fixture.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>
#include <string>

using namespace penstock;
using penstock::test::host_stage;
using penstock::test::rows_of;

namespace {

using shape = std::vector<std::size_t>;
const std::vector<shape> hidden_layers{{}, {7}, {9, 5}};

}  // namespace

namespace std {
static ostream& operator<<(ostream& out, const vector<size_t>& v) {
  out << "hidden";
  for (const auto n : v) out << ' ' << n;
  return out;
}
}  // namespace std

BOOST_AUTO_TEST_SUITE(gradients)

BOOST_DATA_TEST_CASE(each_equals_the_central_difference_of_the_loss_sum, boost::unit_test::data::make(hidden_layers),
                     hidden) {
  const std::size_t rows = 11;
  const rows_of<double> data(rows, 6, 4);
  host_stage<double> s({.model = {.inputs = 6, .hidden = hidden, .outputs = 4}, .rows = rows, .seed = 3});
  s.stage.set_normalisation({std::vector<double>(6, 0.25), std::vector<double>(6, 1.5)});
  s.accumulate(data, 0, rows);
  const std::vector<double> gradients = test::copy_of(s.gradients());
  const double h = 1e-6;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    double& p = s.parameters()[i];
    const double kept = p;
    p = kept + h;
    const double above = s.loss_sum(data, rows);
    p = kept - h;
    const double below = s.loss_sum(data, rows);
    p = kept;
    BOOST_TEST(std::abs(gradients[i] - (above - below) / (2 * h)) < 2e-7 * std::max(1.0, std::abs(gradients[i])));
  }
}

BOOST_DATA_TEST_CASE(any_split_of_the_rows_gives_the_gradient_of_all,
                     boost::unit_test::data::make(std::vector<shape>{
                         {103}, {32, 32, 32, 7}, {1, 102}, {50, 50, 3}, {10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 3}}),
                     split) {
  const rows_of<double> data(103, 12, 5);
  const train::stage_options options{.model = {.inputs = 12, .hidden = {16, 8}, .outputs = 5}, .rows = 103, .seed = 4};
  host_stage<double> whole(options), parts(options);
  whole.accumulate(data, 0, 103);
  std::size_t first = 0;
  for (const std::size_t rows : split) {
    parts.accumulate(data, first, rows);
    first += rows;
  }
  for (std::size_t i = 0; i < whole.gradients().size(); ++i)
    BOOST_TEST(std::abs(whole.gradients()[i] - parts.gradients()[i]) < 1e-13);
  whole.stage.update(0.01);
  parts.stage.update(0.01);
  for (std::size_t i = 0; i < whole.parameters().size(); ++i)
    BOOST_TEST(std::abs(whole.parameters()[i] - parts.parameters()[i]) < 1e-9);
  BOOST_TEST(parts.stage.progress().at_step.rows == 103u);
}

BOOST_AUTO_TEST_CASE(so_does_each_activation) {
  const rows_of<double> data(7, 5, 3);
  using train::activation;
  for (const auto& [kind, layer_norm] : {std::pair{activation::tanh, false},
                                         {activation::sigmoid, false},
                                         {activation::identity, false},
                                         {activation::gelu, false},
                                         {activation::gelu, true},
                                         {activation::relu, true},
                                         {activation::tanh, true}}) {
    host_stage<double> s(
        {.model = {.inputs = 5, .hidden = {6, 4}, .outputs = 3, .activation = kind, .layer_norm = layer_norm},
         .rows = 7,
         .seed = 3});
    s.accumulate(data, 0, 7);
    const std::vector<double> gradients = test::copy_of(s.gradients());
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      double& p = s.parameters()[i];
      const double kept = p;
      p = kept + 1e-6;
      const double above = s.loss_sum(data, 7);
      p = kept - 1e-6;
      const double below = s.loss_sum(data, 7);
      p = kept;
      BOOST_TEST(std::abs(gradients[i] - (above - below) / 2e-6) < 2e-7, train::name_of(kind));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_step_divides_by_its_own_rows_and_starts_from_nothing) {
  // Plain SGD with rate 1 moves a parameter by the mean gradient: 64 rows in the first step, 7 in the second.
  const rows_of<double> data(71, 5, 3);
  const train::stage_options options{.model = {.inputs = 5, .hidden = {}, .outputs = 3},
                                     .optimizer = train::sgd{.learning_rate = 1, .momentum = 0},
                                     .rows = 64,
                                     .seed = 5};
  host_stage<double> s(options), fresh(options);
  s.accumulate(data, 0, 32);
  s.accumulate(data, 32, 32);
  s.stage.update(1);
  const std::vector<double> after_first = test::copy_of(s.parameters());
  std::copy(after_first.begin(), after_first.end(), fresh.parameters().begin());
  fresh.accumulate(data, 64, 7);
  s.accumulate(data, 64, 7);
  s.stage.update(1);
  for (std::size_t i = 0; i < after_first.size(); ++i)
    BOOST_TEST(std::abs(s.parameters()[i] - (after_first[i] - fresh.gradients()[i] / 7)) < 1e-15);
}

BOOST_AUTO_TEST_CASE(the_softmax_gradient_sums_to_zero_over_the_classes) {
  const rows_of<double> data(9, 4, 6);
  const std::vector<double> class_weights{0.5, 1, 2, 0.25, 3, 1};
  for (const double label_smoothing : {0.0, 0.2})
    for (const auto& weights : {std::vector<double>{}, class_weights}) {
      host_stage<double> s({.model = {.inputs = 4, .hidden = {}, .outputs = 6},
                            .loss = train::softmax_cross_entropy{.label_smoothing = label_smoothing},
                            .class_weights = weights,
                            .rows = 9});
      s.accumulate(data, 0, 9);
      const auto change = s.item("train: activations of layer 0");  // of the logits, in their place
      for (std::size_t row = 0; row < 9; ++row) {
        double sum = 0, size = 0;
        for (std::size_t c = 0; c < 6; ++c) sum += change[row * 6 + c], size += std::abs(change[row * 6 + c]);
        BOOST_TEST(std::abs(sum) < 1e-14);
        BOOST_TEST(size > 0.05);
      }
    }
}

BOOST_AUTO_TEST_CASE(the_loss_does_not_depend_on_a_shift_of_the_logits_and_bears_large_ones) {
  const rows_of<double> data(9, 4, 6);
  host_stage<double> s({.model = {.inputs = 4, .hidden = {}, .outputs = 6}, .rows = 9});
  const double loss = s.loss_sum(data, 9);
  for (const double shift : {1.0, -3e3, 1e5}) {
    for (double& bias : s.parameters().last(6)) bias = shift;
    BOOST_TEST(std::abs(s.loss_sum(data, 9) - loss) < 1e-9);
  }
}

BOOST_AUTO_TEST_CASE(equal_logits_give_the_logarithm_of_the_number_of_classes) {
  const rows_of<double> data(8, 3, 10);
  host_stage<double> s({.model = {.inputs = 3, .hidden = {}, .outputs = 10}, .rows = 8});
  std::fill(s.parameters().begin(), s.parameters().end(), 0.0);
  BOOST_TEST(std::abs(s.loss_sum(data, 8) - 8 * std::log(10.0)) < 1e-13);
}

BOOST_AUTO_TEST_CASE(padding_contributes_nothing_whatever_it_holds) {
  rows_of<double> data(16, 4, 3);
  const train::stage_options options{.model = {.inputs = 4, .hidden = {6}, .outputs = 3}, .rows = 16, .seed = 6};
  host_stage<double> short_stage(options), padded(options);
  short_stage.accumulate(data, 0, 10);
  for (std::size_t i = 10 * 4; i < data.x.size(); ++i) data.x[i] = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t i = 10; i < 16; ++i) data.labels[i] = -7;
  padded.stage.accumulate(data.x.data(), data.labels.data(), 16, 10);
  for (std::size_t i = 0; i < padded.gradients().size(); ++i)
    BOOST_TEST(std::abs(padded.gradients()[i] - short_stage.gradients()[i]) < 1e-14);
  const train::progress p = padded.stage.progress();
  BOOST_TEST(p.running.rows == 10u);
  BOOST_TEST(p.bad_input == train::progress::no_row);
  BOOST_TEST(p.bad_label == train::progress::no_row);
}

BOOST_AUTO_TEST_SUITE_END()
