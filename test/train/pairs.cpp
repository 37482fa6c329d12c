#include "fixture.hpp"
#include "gpu.hpp"
#include "reference_file.hpp"
#include "training_file.hpp"

#include <penstock/train/error.hpp>
#include <penstock/train/predictor.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

using namespace penstock;
using penstock::test::host_stage;
using penstock::test::rows_of;
using train::join;

namespace {

constexpr join all_joins[] = {join::difference, join::product, join::concatenation, join::dot};

/// Pairs of rows, and which of the two is better.
template <class T>
struct pairs {
  rows_of<T> first, second;
  std::vector<std::int32_t> better;

  pairs(std::size_t rows, std::size_t width) : first(rows, width, 2, 1), second(rows, width, 2, 2), better(rows) {
    for (std::size_t n = 0; n < rows; ++n) better[n] = first.row(n)[0] > second.row(n)[0] ? 1 : 0;
  }
  train::batch_rows rows(std::size_t from, std::size_t count) const {
    return {.x = first.row(from),
            .x2 = second.row(from),
            .targets = &better[from],
            .rows = count,
            .valid_rows = count,
            .first_row = from};
  }
};

train::stage_options options_for(const train::pair_options& pair, std::size_t rows) {
  return {.model = {.inputs = 5, .hidden = {6}, .outputs = 1, .activation = train::activation::tanh, .pair = pair},
          .loss = train::pairwise_ranking{},
          .rows = rows,
          .seed = 3};
}

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
  void accumulate(std::size_t rows) {
    stage.accumulate({.x = at("x"), .x2 = at("x2"), .targets = at("y"), .rows = rows, .valid_rows = rows - 2});
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

constexpr std::size_t reference_batch = 16;

/// A case of pairs.json: both inputs lie in one row of its x.
template <class T>
struct reference {
  static constexpr std::size_t inputs = 6;
  std::vector<T> a, b;
  std::vector<std::int32_t> better;
  host_stage<T> s;

  explicit reference(const nlohmann::json& each)
      : better(each.at("targets").get<std::vector<std::int32_t>>()), s(options_of(each.at("options"))) {
    for (const nlohmann::json& row : each.at("x"))
      for (std::size_t n = 0; n < 2 * inputs; ++n) (n < inputs ? a : b).push_back(row.at(n).get<T>());
  }
  void set(const std::vector<double>& parameters) {
    std::transform(parameters.begin(), parameters.end(), s.parameters().begin(),
                   [](double p) { return static_cast<T>(p); });
  }
  /// Adds the gradients of the step's batch; returns its mean loss.
  double accumulate(std::size_t step) {
    const std::size_t first = step * reference_batch % better.size();
    s.stage.reset();
    s.stage.accumulate({.x = &a[first * inputs],
                        .x2 = &b[first * inputs],
                        .targets = &better[first],
                        .rows = reference_batch,
                        .valid_rows = reference_batch});
    return s.stage.progress().running.loss();
  }

 private:
  static train::stage_options options_of(const nlohmann::json& o) {
    train::stage_options options{.model = {.inputs = inputs, .hidden = {8}, .outputs = 1},
                                 .loss = train::pairwise_ranking{},
                                 .optimizer = train::adamw{.weight_decay = 0.05},
                                 .rows = reference_batch};
    options.model.activation = train::activation::tanh;
    options.model.pair = {.join = train::parse_join(o.at("join").get<std::string>()),
                          .shared = o.at("shared"),
                          .embedding = o.at("embedding"),
                          .head = o.at("head").get<std::vector<std::size_t>>()};
    return options;
  }
};

/// /a and /b, rows x 6, and /better: whether a's first value is the larger one.
struct pair_file : test::scratch_folder {
  static constexpr std::size_t rows = 600, columns = 6;
  std::filesystem::path file = folder / "pairs.h5";
  rows_of<float> a{rows, columns, 2, 1}, b{rows, columns, 2, 2};

  pair_file() { write(); }
  void write() const {
    std::vector<std::uint8_t> better(rows);
    for (std::size_t n = 0; n < rows; ++n) better[n] = a.row(n)[0] > b.row(n)[0] ? 1 : 0;
    io::writer to(file);
    for (const auto& [name, values] : {std::pair{"/a", &a.x}, {"/b", &b.x}}) {
      to.create(name, type::float32, {rows, columns});
      to.write_rows(name, 0, rows, std::as_bytes(std::span(*values)));
    }
    to.create("/better", type::uint8, {rows});
    to.write_rows("/better", 0, rows, std::as_bytes(std::span(better)));
    to.commit();
  }
  pipeline::opened open(std::size_t batch_rows) const {
    auto source = pipeline::source{}
                      .field("x", {{file, "/a"}}, {.as = type::float32})
                      .field("x2", {{file, "/b"}}, {.as = type::float32})
                      .field("label", {{file, "/better"}}, {.as = type::int32});
    return (pipeline::read(source, pipeline::shuffled{.seed = 5, .run_rows = 16, .pool_rows = 128}) |
            pipeline::batch_options{.rows = batch_rows, .last = pipeline::last_batch::pad, .held = 0})
        .open();
  }
  static train::trainer_options options() {
    return {.stage = {.model = {.inputs = columns,
                                .hidden = {16},
                                .outputs = 1,
                                .dropout = 0.1,
                                .pair = {.join = join::difference, .embedding = 1}},
                      .loss = train::pairwise_ranking{},
                      .optimizer = train::adamw{.learning_rate = 0.01},
                      .rows = 50,
                      .seed = 3,
                      .threads = 1},
            .x2 = "x2",
            .check_every = 2};
  }
};

struct pair_run {
  gpu::stream stream{gpu::device::host()};
  train::planned_run planned;
  train::trainer trainer;

  explicit pair_run(const pair_file& data, const train::trainer_options& options = pair_file::options())
      : planned([&] {
          auto training = data.open(options.stage.rows), testing = data.open(options.stage.rows);
          const auto plan = train::plan(gpu::device::host(), {}, options.stage, training, &testing);
          return train::build(plan, std::move(training), std::move(testing));
        }()),
        trainer(stream, options, planned.memory) {}

  std::vector<float> weights() { return test::weights_of(trainer.stage()); }
};

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

BOOST_AUTO_TEST_CASE(a_hundred_steps_are_those_of_pytorch) {
  for (const nlohmann::json& each : test::reference_cases("pairs.json")) {
    BOOST_TEST_CONTEXT(each.at("name")) {
      reference<double> run(each);
      run.set(each.at("steps").at(0).at("parameters"));
      const std::vector<double> losses = each.at("losses");
      for (std::size_t step = 0; step < losses.size(); ++step) {
        BOOST_TEST(std::abs(run.accumulate(step) - losses[step]) < 1e-9);
        run.s.stage.update(0.01);
      }
      const std::vector<double> last = each.at("last");
      BOOST_TEST_REQUIRE(last.size() == run.s.parameters().size());
      for (std::size_t i = 0; i < last.size(); ++i) BOOST_TEST(std::abs(run.s.parameters()[i] - last[i]) < 1e-9);
    }
  }
}

BOOST_AUTO_TEST_CASE(gradients_in_float32_are_those_of_pytorch_to_a_hundred_thousandth) {
  for (const nlohmann::json& each : test::reference_cases("pairs.json"))
    for (const nlohmann::json& kept : each.at("steps")) {
      BOOST_TEST_CONTEXT(each.at("name") << ", step " << kept.at("step")) {
        reference<float> run(each);
        run.set(kept.at("parameters"));
        run.accumulate(kept.at("step"));
        const std::vector<double> gradient = kept.at("gradient");
        double worst = 0, largest = 0;
        for (std::size_t i = 0; i < gradient.size(); ++i) {
          worst = std::max(worst, std::abs(double(run.s.gradients()[i]) / reference_batch - gradient[i]));
          largest = std::max(largest, std::abs(gradient[i]));
        }
        BOOST_TEST(worst < 1e-5 * largest);
      }
    }
}

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

BOOST_AUTO_TEST_CASE(a_predictor_gives_what_the_stage_does) {
  const pair_file data;
  pair_run run(data);
  run.trainer.normalise_from(run.planned.training);
  for (int epoch = 0; epoch < 6; ++epoch) run.trainer.train_epoch(run.planned.training);
  const train::metrics tested = run.trainer.evaluate(*run.planned.testing);
  BOOST_TEST(tested.accuracy() > 0.93);
  run.trainer.save(data.path("state.h5"));

  train::predictor_options options = train::options_of(data.path("state.h5"));
  options.rows = 64;
  BOOST_TEST((options.model == pair_file::options().stage.model));
  BOOST_TEST((options.form == train::prediction::sigmoid));
  const auto memory = std::make_shared<gpu::memory>(gpu::device::host(), train::plan(gpu::device::host(), options));
  train::predictor predictor(gpu::stream_ref{}, options, memory);
  predictor.load(data.path("state.h5"));
  auto source = pipeline::source{}
                    .field("x", {{data.file, "/a"}}, {.as = type::float32})
                    .field("x2", {{data.file, "/b"}}, {.as = type::float32});
  auto rows = (pipeline::read(source) | pipeline::batch_options{.rows = 64}).build(gpu::device::host(), {});
  std::uint64_t right = 0;
  predictor.predict(
      rows, "x",
      [&](std::uint64_t first, std::size_t count, std::span<const std::byte> values) {
        const auto* const p = reinterpret_cast<const float*>(values.data());
        for (std::size_t n = 0; n < count; ++n)
          right += (p[n] > 0.5f) == (data.a.row(first + n)[0] > data.b.row(first + n)[0]) ? 1 : 0;
      },
      {}, "x2");
  BOOST_TEST(right == tested.correct);
}

BOOST_AUTO_TEST_CASE(a_resumed_run_has_the_bits_of_the_undisturbed_one) {
  const pair_file data;
  for (const bool shared : {true, false}) {
    train::trainer_options options = pair_file::options();
    options.stage.model.pair.shared = shared;
    pair_run whole(data, options), first(data, options), second(data, options);
    whole.trainer.normalise_from(whole.planned.training);
    whole.trainer.train_epoch(whole.planned.training);
    whole.trainer.train_epoch(whole.planned.training);
    first.trainer.normalise_from(first.planned.training);
    first.trainer.train_epoch(first.planned.training);
    first.trainer.save(data.path("state.h5"));
    second.trainer.resume(data.path("state.h5"));
    second.trainer.train_epoch(second.planned.training);
    BOOST_TEST(test::same_bits<float>(second.weights(), whole.weights()));
    options.stage.model.pair.shared = !shared;
    pair_run other(data, options);
    BOOST_CHECK_THROW(other.trainer.resume(data.path("state.h5")), train::error);
  }
}

BOOST_AUTO_TEST_CASE(a_bad_value_of_the_second_input_is_named_by_its_dataset) {
  pair_file data;
  data.b.x[77 * pair_file::columns + 3] = std::numeric_limits<float>::quiet_NaN();
  data.write();
  const auto names_it = [](const train::error& e) {
    return e.where().rows == std::vector<std::uint64_t>{77} &&
           std::string(e.what()).find("pairs.h5:/b row 77") != std::string::npos;
  };
  pair_run run(data);
  BOOST_CHECK_EXCEPTION(run.trainer.normalise_from(run.planned.training), train::error, names_it);
  pair_run other(data);
  BOOST_CHECK_EXCEPTION(other.trainer.train_epoch(other.planned.training), train::error, names_it);
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
  const pair_file file;
  train::trainer_options options = pair_file::options();
  options.x2.clear();
  BOOST_CHECK_THROW(pair_run(file, options), std::invalid_argument);
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

BOOST_AUTO_TEST_CASE(cuda_agrees_with_the_host, test::on_gpu()) {
  const pairs<double> data(65, 5);
  for (const join kind : all_joins)
    for (const bool shared : {true, false}) {
      train::stage_options options = options_for({.join = kind, .shared = shared, .embedding = 35, .head = {4}}, 65);
      options.model.layer_norm = true;
      options.model.dropout = 0.2;
      options.compute = type::float64;
      pair_stage<double> host(gpu::device::host(), options, data), cuda(test::first_gpu(), options, data);
      host.accumulate(65);
      cuda.accumulate(65);
      BOOST_TEST(distance(host.gradients(), cuda.gradients()) < 1e-12, train::to_text(options.model));
      BOOST_TEST(std::abs(host.stage.progress().running.loss() - cuda.stage.progress().running.loss()) < 1e-12);
      options.loss = train::pairwise_ranking{.margin = 1};
      pair_stage<double> margin_host(gpu::device::host(), options, data), margin(test::first_gpu(), options, data);
      margin_host.accumulate(65);
      margin.accumulate(65);
      BOOST_TEST(distance(margin_host.gradients(), margin.gradients()) < 1e-12);
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
