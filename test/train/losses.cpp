#include "fixture.hpp"
#include "reference_file.hpp"

#include <penstock/train/loss.hpp>

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

using namespace penstock;
using nlohmann::json;
using penstock::test::host_stage;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

train::loss_options loss_of(const json& each) {
  const json& o = each.at("options");
  const std::string name = each.at("name");
  if (name == "softmax") return train::softmax_cross_entropy{.label_smoothing = o.value("label_smoothing", 0.0)};
  if (name == "binary") return train::binary_cross_entropy{.positive_weight = o.value("positive_weight", 1.0)};
  if (name == "huber") return train::huber{.delta = o.at("delta")};
  if (name == "ranking") return train::pairwise_ranking{.margin = o.at("margin")};
  return train::mean_squared_error{};
}

/// A model whose outputs are its inputs.
template <class T>
host_stage<T> pass_through(train::stage_options options, std::size_t width) {
  options.model = {.inputs = width, .hidden = {}, .outputs = width};
  host_stage<T> s(options);
  std::fill(s.parameters().begin(), s.parameters().end(), T(0));
  for (std::size_t i = 0; i < width; ++i) s.parameters()[i * width + i] = 1;
  return s;
}

template <class T>
std::vector<T> flat(const json& rows) {
  std::vector<T> all;
  for (const json& row : rows)
    if (row.is_array())
      for (const json& value : row) all.push_back(value.get<T>());
    else
      all.push_back(row.get<T>());
  return all;
}

/// What a case gives a stage; masked rows hold NaN.
struct case_rows {
  std::size_t rows, width;
  std::vector<double> x, values, weights;
  std::vector<std::int32_t> labels;

  explicit case_rows(const json& each)
      : rows(each.at("outputs").size()),
        width(each.at("outputs").at(0).size()),
        x(flat<double>(each.at("outputs"))),
        weights(flat<double>(each.at("weights"))) {
    if (each.at("targets").at(0).is_array())
      values = flat<double>(each.at("targets"));
    else
      labels = flat<std::int32_t>(each.at("targets"));
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] != 0) continue;
      std::fill_n(x.begin() + static_cast<std::ptrdiff_t>(i * width), width, not_a_number);
      if (!values.empty()) std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(i * width), width, not_a_number);
      if (!labels.empty()) labels[i] = -5;
    }
  }
  train::target form() const { return labels.empty() ? train::target::values : train::target::label; }
  train::batch_rows batch() const {
    return {.x = x.data(),
            .targets = labels.empty() ? static_cast<const void*>(values.data()) : labels.data(),
            .weights = weights.empty() ? nullptr : weights.data(),
            .rows = rows,
            .valid_rows = rows};
  }
};

/// A stage whose only outputs are `x` for one row, with labels or values as targets.
train::metrics score(const train::stage_options& options, const std::vector<double>& x, const void* targets,
                     std::size_t rows) {
  auto s = pass_through<double>(options, x.size() / rows);
  s.stage.evaluate(x.data(), targets, rows, rows);
  return s.stage.progress().running;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(losses)

BOOST_AUTO_TEST_CASE(losses_and_gradients_are_those_of_pytorch) {
  std::size_t number = 0;
  for (const json& each : test::reference_cases("losses.json")) {
    const case_rows rows(each);
    BOOST_TEST_CONTEXT("case " << number++ << ", " << train::to_text(loss_of(each))) {
      const train::loss_options loss = loss_of(each);
      train::stage_options options{.loss = loss, .targets = rows.form(), .rows = rows.rows};
      options.class_weights = each.at("options").value("class_weights", std::vector<double>{});
      auto s = pass_through<double>(options, rows.width);
      s.stage.accumulate(rows.batch());
      const train::progress p = s.stage.progress();
      const double expected = each.at("loss");
      BOOST_TEST(std::abs(p.running.loss() - expected) < 1e-14 * std::max(1.0, std::abs(expected)));
      const auto gradient = flat<double>(each.at("gradient"));
      const auto found = s.item("train: activations of layer 0");
      for (std::size_t i = 0; i < gradient.size(); ++i)
        BOOST_TEST(std::abs(found[i] / p.running.weight_sum - gradient[i]) < 1e-15);
      BOOST_TEST(p.bad_input == train::progress::no_row);
      BOOST_TEST(p.bad_label == train::progress::no_row);
      BOOST_TEST(p.bad_loss == train::progress::no_row);
    }
  }
  BOOST_TEST(number == 19u);
}

BOOST_AUTO_TEST_CASE(any_split_of_weighted_rows_gives_the_update_of_all) {
  const test::rows_of<double> data(30, 4, 3);
  std::vector<double> weights(30);
  for (std::size_t i = 0; i < 30; ++i) weights[i] = 0.5 * static_cast<double>(i % 4);
  train::stage_options options{
      .model = {.inputs = 4, .hidden = {5}, .outputs = 3}, .optimizer = train::sgd{.momentum = 0}, .rows = 30};
  options.class_weights = {1, 2, 0.5};
  host_stage<double> whole(options), parts(options);
  const auto rows = [&](std::size_t first, std::size_t count) {
    return train::batch_rows{.x = data.row(first),
                             .targets = &data.labels[first],
                             .weights = &weights[first],
                             .rows = count,
                             .valid_rows = count};
  };
  whole.stage.accumulate(rows(0, 30));
  for (const auto& [first, count] : {std::pair{0u, 16u}, {16u, 1u}, {17u, 13u}})
    parts.stage.accumulate(rows(first, count));
  for (auto* each : {&whole, &parts}) each->stage.update(1);
  for (std::size_t i = 0; i < whole.parameters().size(); ++i)
    BOOST_TEST(std::abs(whole.parameters()[i] - parts.parameters()[i]) < 1e-14);
  BOOST_TEST(whole.stage.progress().running.rows == 22u);  // every fourth weight is 0
}

BOOST_AUTO_TEST_CASE(labels_may_count_from_one) {
  const std::vector<double> x{0, 0, 9, 9, 0, 0};
  const std::vector<std::int32_t> labels{3, 1}, zero{0, 1};
  const train::stage_options options{.targets = train::target::label_from_one, .rows = 2};
  BOOST_TEST(score(options, x, labels.data(), 2).correct == 2u);
  auto s = pass_through<double>(options, 3);
  s.stage.evaluate(x.data(), zero.data(), 2, 2);
  BOOST_TEST(s.stage.progress().bad_label == 0u);
}

BOOST_AUTO_TEST_CASE(a_row_is_in_the_top_k_where_fewer_outputs_are_ahead) {
  // Of row 0 the label is third; of row 1 it is tied with class 0, which comes first.
  const std::vector<double> x{5, 4, 3, 2, 7, 7, 0, 0};
  const std::vector<std::int32_t> labels{2, 1};
  for (const auto& [k, expected] : {std::pair{1u, 0u}, {2u, 1u}, {3u, 2u}}) {
    const train::metrics found = score({.top_k = k, .rows = 2}, x, labels.data(), 2);
    BOOST_TEST(found.in_top_k == expected);
    BOOST_TEST(found.correct == 0u);
  }
}

BOOST_AUTO_TEST_CASE(rmse_is_the_root_of_the_mean_squared_distance) {
  const std::vector<double> x{1, 2, 3, 4}, values{1, 4, 0, 4};  // distances 0, 2, 3, 0
  for (const train::loss_options& loss :
       {train::loss_options(train::mean_squared_error{}), train::loss_options(train::huber{})}) {
    const train::metrics found =
        score({.loss = loss, .targets = train::target::values, .rows = 2}, x, values.data(), 2);
    BOOST_TEST(std::abs(found.rmse() - std::sqrt(13.0 / 4)) < 1e-15);
  }
}

BOOST_AUTO_TEST_CASE(a_sigmoid_is_right_on_its_side_of_a_half_and_a_row_where_all_are) {
  const std::vector<double> x{2, -1, 2, 1, -3, -3}, values{1, 0, 1, 0, 0, 0.2};
  const train::metrics found =
      score({.loss = train::binary_cross_entropy{}, .targets = train::target::values, .rows = 3}, x, values.data(), 3);
  BOOST_TEST(found.correct == 2u);
}

BOOST_AUTO_TEST_CASE(the_confusion_counts_targets_by_predictions) {
  const std::vector<double> x{9, 0, 0, 0, 9, 0, 0, 9, 0, 0, 0, 9, 9, 0, 0};
  const std::vector<std::int32_t> labels{0, 0, 1, 2, 2};
  auto s = pass_through<double>({.confusion = true, .rows = 5}, 3);
  s.stage.accumulate(x.data(), labels.data(), 5, 5);
  s.stage.evaluate(x.data(), labels.data(), 5, 5);
  const train::confusion_matrix found = s.stage.confusion();
  BOOST_TEST(found.counts == (std::vector<std::uint64_t>{1, 1, 0, 0, 1, 0, 1, 0, 1}), boost::test_tools::per_element());
  BOOST_TEST(found.precision(0) == 0.5);
  BOOST_TEST(found.recall(2) == 0.5);
  BOOST_TEST(found.recall(1) == 1.0);
  s.stage.reset();
  BOOST_TEST(s.stage.confusion().of(0, 0) == 0u);
}

BOOST_AUTO_TEST_CASE(the_confusion_of_one_sigmoid_has_two_classes) {
  const std::vector<double> x{3, -3, 1, -1};
  const std::vector<std::int32_t> labels{1, 0, 0, 0};
  auto s = pass_through<double>({.loss = train::binary_cross_entropy{}, .confusion = true, .rows = 4}, 1);
  s.stage.evaluate(x.data(), labels.data(), 4, 4);
  BOOST_TEST(s.stage.confusion().counts == (std::vector<std::uint64_t>{2, 1, 0, 1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(outputs_that_are_no_numbers_predict_nothing) {
  const double infinite = std::numeric_limits<double>::infinity();
  const std::vector<double> x{3, 1, 0, not_a_number, not_a_number, not_a_number, 0, not_a_number, 1, infinite, 0, 0};
  const std::vector<std::int32_t> labels{0, 0, 2, 0};
  auto s = pass_through<double>({.top_k = 3, .confusion = true, .rows = 4, .non_finite = train::non_finite::skip}, 3);
  s.stage.evaluate(x.data(), labels.data(), 4, 4);
  const train::metrics found = s.stage.progress().running;
  BOOST_TEST(found.rows == 4u);
  BOOST_TEST(found.correct == 1u);
  BOOST_TEST(found.in_top_k == 1u);
  BOOST_TEST(s.stage.confusion().counts == (std::vector<std::uint64_t>{1, 0, 0, 0, 0, 0, 0, 0, 0}),
             boost::test_tools::per_element());

  const std::vector<double> said{not_a_number, -1};
  const std::vector<std::int32_t> no{0, 0};
  auto yes_no = pass_through<double>(
      {.loss = train::binary_cross_entropy{}, .confusion = true, .rows = 2, .non_finite = train::non_finite::skip}, 1);
  yes_no.stage.evaluate(said.data(), no.data(), 2, 2);
  BOOST_TEST(yes_no.stage.progress().running.correct == 1u);
  BOOST_TEST(yes_no.stage.confusion().counts == (std::vector<std::uint64_t>{1, 0, 0, 0}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(metrics_of_nothing_are_no_numbers) {
  const train::metrics none;
  for (const double value : {none.loss(), none.accuracy(), none.top_k_accuracy(), none.rmse()})
    BOOST_TEST(std::isnan(value));
}

BOOST_AUTO_TEST_CASE(targets_and_weights_at_fault_are_named_and_change_nothing) {
  struct fault {
    train::loss_options loss;
    std::vector<double> values;  // two rows of two
  };
  const std::vector<double> x{1, 2, 3, 4};
  for (const fault& each :
       {fault{train::softmax_cross_entropy{}, {0.5, 0.5, 0.5, 0.6}},
        fault{train::softmax_cross_entropy{}, {0, 1, 1.5, -0.5}}, fault{train::binary_cross_entropy{}, {0, 1, 0, 1.1}},
        fault{train::mean_squared_error{}, {0, 1, 0, not_a_number}},
        fault{train::huber{}, {0, 1, std::numeric_limits<double>::infinity(), 0}}}) {
    auto s = pass_through<double>({.loss = each.loss, .targets = train::target::values, .rows = 2}, 2);
    const auto before = test::copy_of(s.parameters());
    s.stage.accumulate(x.data(), each.values.data(), 2, 2);
    s.stage.update(1);
    BOOST_TEST(s.stage.progress().bad_label == 1u);
    BOOST_TEST(test::same_bits<double>(s.parameters(), before));
  }
  const std::vector<std::int32_t> labels{0, 1};
  for (const double weight : {-1.0, not_a_number}) {
    const std::vector<double> weights{1, weight};
    auto s = pass_through<double>({.rows = 2}, 2);
    const auto before = test::copy_of(s.parameters());
    s.stage.accumulate(
        {.x = x.data(), .targets = labels.data(), .weights = weights.data(), .rows = 2, .valid_rows = 2});
    s.stage.update(1);
    BOOST_TEST(s.stage.progress().bad_weight == 1u);
    BOOST_TEST(test::same_bits<double>(s.parameters(), before));
  }
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_together_is_refused) {
  const auto refused = [](const train::loss_options& loss, train::target targets, std::size_t outputs) {
    BOOST_CHECK_THROW(train::check(loss, targets, outputs), std::invalid_argument);
  };
  using train::target;
  refused(train::softmax_cross_entropy{}, target::label, 1);
  refused(train::softmax_cross_entropy{.label_smoothing = 1}, target::label, 3);
  refused(train::binary_cross_entropy{}, target::label, 2);
  refused(train::binary_cross_entropy{.positive_weight = 0}, target::values, 2);
  refused(train::mean_squared_error{}, target::label, 1);
  refused(train::huber{.delta = 0}, target::values, 1);
  refused(train::pairwise_ranking{}, target::label, 2);
  refused(train::pairwise_ranking{.margin = -1}, target::values, 1);
  BOOST_CHECK_THROW(train::parse_loss("hinge"), std::invalid_argument);
  for (const char* name : {"softmax", "binary", "mse", "huber", "ranking"})
    BOOST_TEST(train::name_of(train::parse_loss(name)) == name);
  train::stage_options options{.model = {.inputs = 2, .hidden = {}, .outputs = 2},
                               .loss = train::mean_squared_error{},
                               .targets = target::values,
                               .confusion = true};
  BOOST_CHECK_THROW(train::plan(gpu::device::host(), options), std::invalid_argument);
  options = {.model = {.inputs = 2, .hidden = {}, .outputs = 2}};
  for (const std::vector<double>& weights : {std::vector<double>{1, 2, 3}, {1, -2}}) {
    options.class_weights = weights;
    BOOST_CHECK_THROW(train::plan(gpu::device::host(), options), std::invalid_argument);
  }
}

BOOST_AUTO_TEST_SUITE_END()
