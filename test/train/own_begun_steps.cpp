// A model of the user's that is stopped between two batches of a step, with and without gradients that it shows.
#include "training_file.hpp"

#include <penstock/train/error.hpp>
#include <penstock/train/own_model.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <stop_token>
#include <vector>

using namespace penstock;
using gpu::memory_kind;
using penstock::test::training_file;

namespace {

constexpr std::size_t inputs = training_file::columns;

/// Linear regression of the label. `gradient` ends with the rows that it was summed over.
struct forgetful_model {
  float* weight = nullptr;
  double* gradient = nullptr;
  std::function<void(const pipeline::batch&)> watch{};  // at each batch of training
  std::vector<std::uint64_t> seen{};                    // these batches

  gpu::ledger plan(gpu::device) const {
    gpu::ledger items;
    items.add(memory_kind::device, "own: weights", inputs * sizeof(float));
    items.add(memory_kind::device, "own: gradients", (inputs + 1) * sizeof(double));
    return items;
  }
  void bind(gpu::stream_ref, const gpu::memory& memory) {
    weight = reinterpret_cast<float*>(memory.at(memory_kind::device, "own: weights").data());
    gradient = reinterpret_cast<double*>(memory.at(memory_kind::device, "own: gradients").data());
    std::fill(weight, weight + inputs, 0.0f);
  }
  void step(const pipeline::batch& batch, const train::step_place& at) {
    if (at.training && at.begins) std::fill(gradient, gradient + inputs + 1, 0.0);
    const auto* const x = batch.field<float>("x");
    for (std::size_t i = 0; i < batch.valid_rows(); ++i) {
      double off = -batch.field<std::int32_t>("label")[i];
      for (std::size_t j = 0; j < inputs; ++j) off += double(weight[j]) * double(x[i * inputs + j]);
      at.sums->loss_sum += off * off / 2;
      at.sums->weight_sum += 1;
      ++at.sums->rows;
      for (std::size_t j = 0; j < inputs && at.training; ++j) gradient[j] += off * double(x[i * inputs + j]);
    }
    if (!at.training) return;
    gradient[inputs] += static_cast<double>(batch.valid_rows());
    seen.push_back(batch.index());
    if (watch) watch(batch);
    for (std::size_t j = 0; j < inputs && at.ends; ++j)
      weight[j] -= static_cast<float>(at.learning_rate * gradient[j] / gradient[inputs]);
  }
  void visit_state(const train::state_visitor& visit) {
    visit({"/model/weight", type::float32, {inputs}, reinterpret_cast<std::byte*>(weight)});
  }
};
static_assert(train::trainable<forgetful_model>);

struct showing_model : forgetful_model {
  const char* path = "/gradients/weight";
  std::size_t values = inputs + 1;
  void visit_gradients(const train::state_visitor& visit) {
    visit({path, type::float64, {values}, reinterpret_cast<std::byte*>(gradient)});
  }
};
static_assert(train::trainable<showing_model>);

const train::trainer_options options{
    .stage = {.optimizer = train::sgd{.learning_rate = 0.05}, .rows = 64}, .accumulate = 5, .check_every = 1};

template <class Model>
struct own_run {
  Model& model;
  train::planned_run planned;
  train::trainer trainer;

  own_run(const training_file& data, Model& m)
      : model(m),
        planned([&] {
          auto training = data.open(64), testing = data.open(64);
          const auto plan = train::plan(gpu::device::host(), {}, train::functions_of(model), training, &testing);
          return train::build(plan, std::move(training), std::move(testing));
        }()),
        trainer(gpu::stream_ref{}, options, planned.memory, train::functions_of(model)) {}

  train::epoch_progress epoch(std::stop_token stop = {}) { return trainer.train_epoch(planned.training, stop); }
  /// Stops behind batch n of the epoch.
  void stop_after(std::uint64_t n) {
    std::stop_source stop;
    model.watch = [&](const pipeline::batch& batch) {
      if (batch.index() == n) stop.request_stop();
    };
    BOOST_TEST(!epoch(stop.get_token()).complete);
    model.watch = nullptr;
  }
  std::vector<float> weights() const { return {model.weight, model.weight + inputs}; }
};

/// 16 batches in steps of 5: the last step has one. Stops after each of the first 15, in the run and in one that goes
/// on from its checkpoint; `kept`: whether the step's batches are.
template <class Model>
void check_every_place(bool kept) {
  const training_file data;
  Model undisturbed;
  own_run whole(data, undisturbed);
  whole.epoch();
  const train::metrics expected = whole.epoch().training;
  for (std::uint64_t n = 0; n < 14; ++n) {
    Model first, second;
    own_run run(data, first), resumed(data, second);
    run.epoch();
    run.stop_after(n);
    const std::uint64_t begun = (n + 1) % 5;
    BOOST_TEST(run.trainer.position().next_batch == (n + 1) / 5 * 5);
    BOOST_TEST(run.trainer.position().begun.batches == (kept ? begun : 0));
    run.trainer.save(data.path("own.h5"));
    BOOST_TEST(resumed.trainer.resume(data.path("own.h5")) == "");
    for (auto* const each : {&run, &resumed}) {
      each->trainer.evaluate(*each->planned.testing);
      each->model.seen.clear();
      const train::epoch_progress done = each->epoch();
      BOOST_TEST(done.complete);
      BOOST_TEST(each->model.seen.front() == (kept || begun == 0 ? n + 1 : n + 1 - begun));
      BOOST_TEST(each->weights() == whole.weights(), boost::test_tools::per_element());
      BOOST_TEST(done.training.loss_sum == expected.loss_sum);
      BOOST_TEST(done.training.rows == 1000u);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(own_begun_steps)

BOOST_AUTO_TEST_CASE(a_model_that_shows_its_gradients_goes_on_between_the_batches_of_a_step) {
  check_every_place<showing_model>(true);
}
BOOST_AUTO_TEST_CASE(one_that_does_not_makes_the_step_anew) { check_every_place<forgetful_model>(false); }

BOOST_AUTO_TEST_CASE(a_step_whose_gradients_a_model_no_longer_shows_is_made_anew_and_said_to_be) {
  const training_file data;
  showing_model first;
  forgetful_model second;
  own_run run(data, first);
  run.stop_after(6);
  run.trainer.save(data.path("own.h5"));
  own_run other(data, second);
  BOOST_TEST(other.trainer.resume(data.path("own.h5")) ==
             "it was stopped after 2 of the 5 batches of 64 rows of a step, and this run's model shows no gradients: "
             "that step is made anew");
  run.epoch();
  other.epoch();
  BOOST_TEST(other.weights() == run.weights(), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(other_gradients_are_refused_with_both_sides) {
  const training_file data;
  showing_model first, renamed, shorter, astray;
  own_run run(data, first);
  run.stop_after(6);
  run.trainer.save(data.path("own.h5"));
  const auto refused = [&](showing_model& model, const std::string& there, const std::string& here) {
    own_run other(data, model);
    const auto before = other.weights();
    BOOST_CHECK_EXCEPTION(other.trainer.resume(data.path("own.h5")), train::error, [&](const train::error& e) {
      const std::string text = e.what();
      return text.find("own.h5") != std::string::npos && text.find(there) != std::string::npos &&
             text.find(here) != std::string::npos;
    });
    BOOST_TEST(other.weights() == before, boost::test_tools::per_element());
  };
  renamed.path = "/gradients/other";
  refused(renamed, "/gradients/weight", "/gradients/other");
  shorter.values = inputs;
  refused(shorter, "of shape 13", "of shape 12");
  astray.path = "/model/gradient";
  BOOST_CHECK_THROW(own_run(data, astray), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
