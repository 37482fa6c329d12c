// A model of the user's in the training loop. Its weights are compared with a loop in float64 written here.
#include "gpu.hpp"
#include "large_allocations.hpp"
#include "training_file.hpp"

#include <penstock/train/error.hpp>
#include <penstock/train/own_model.hpp>
#include <penstock/train/predictor.hpp>

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>

using namespace penstock;
using namespace penstock::literals;
using gpu::memory_kind;
using penstock::test::training_file;

namespace {

constexpr std::size_t inputs = training_file::columns;

/// Linear regression of the label by gradient descent, on the host. Gradients are added up over the batches of a step.
struct linear_model {
  std::string called = "linear regression";
  float* weight = nullptr;
  double* gradient = nullptr;
  std::size_t steps_seen = 0, rows_in_step = 0;
  std::size_t scratch_values = 0;  // allocated in each step
  std::size_t allocations = 0;     // in steps, of any size
  float first_weight = 0;
  std::function<void(const pipeline::batch&, const train::step_place&)> misbehave{};  // at the start of each step

  std::string name() const { return called; }
  gpu::ledger plan(gpu::device) const {
    gpu::ledger items;
    items.add(memory_kind::device, "own: weights", inputs * sizeof(float));
    items.add(memory_kind::device, "own: gradients", inputs * sizeof(double));
    return items;
  }
  void bind(gpu::stream_ref, const gpu::memory& memory) {
    weight = reinterpret_cast<float*>(memory.at(memory_kind::device, "own: weights").data());
    gradient = reinterpret_cast<double*>(memory.at(memory_kind::device, "own: gradients").data());
    std::fill(weight, weight + inputs, first_weight);
  }
  void step(const pipeline::batch& batch, const train::step_place& at) {
    if (misbehave) misbehave(batch, at);
    if (at.training && at.ends) BOOST_TEST(at.step == steps_seen++);
    const test::allocations_here all;
    work(batch, at);
    allocations += all.count();
  }
  void work(const pipeline::batch& batch, const train::step_place& at) {
    std::vector<double> scratch(scratch_values);
    const auto* const x = batch.field<float>("x");
    const auto* const label = batch.field<std::int32_t>("label");
    if (at.training && at.begins) {
      std::fill(gradient, gradient + inputs, 0.0);
      rows_in_step = 0;
    }
    for (std::size_t i = 0; i < batch.valid_rows(); ++i) {
      double off = -label[i];
      for (std::size_t j = 0; j < inputs; ++j)
        off += static_cast<double>(weight[j]) * static_cast<double>(x[i * inputs + j]);
      at.sums->loss_sum += off * off / 2;
      at.sums->weight_sum += 1;
      ++at.sums->rows;
      for (std::size_t j = 0; j < inputs && at.training; ++j)
        gradient[j] += off * static_cast<double>(x[i * inputs + j]);
    }
    rows_in_step += batch.valid_rows();
    if (!at.training || !at.ends) return;
    for (std::size_t j = 0; j < inputs; ++j)
      weight[j] -= static_cast<float>(at.learning_rate * gradient[j] / static_cast<double>(rows_in_step));
  }
  void visit_state(const train::state_visitor& visit) {
    visit({"/model/weight", type::float32, {inputs}, reinterpret_cast<std::byte*>(weight)});
  }
};
static_assert(train::trainable<linear_model>);
static_assert(!train::trainable<int>);

/// Counts rows, on any device, and learns nothing.
struct row_counter {
  gpu::stream_ref stream{};
  std::byte* state = nullptr;
  std::size_t grows_by = 0;  // device bytes, once
  std::optional<gpu::memory> grown{};

  gpu::ledger plan(gpu::device) const {
    gpu::ledger items;
    items.add(memory_kind::device, "own: state", sizeof(float));
    return items;
  }
  void bind(gpu::stream_ref s, const gpu::memory& memory) {
    stream = s;
    state = memory.at(memory_kind::device, "own: state").data();
    gpu::fill(stream, state, 0, sizeof(float));
  }
  void step(const pipeline::batch& batch, const train::step_place& at) {
    if (grows_by > 0 && !grown) {
      gpu::ledger more;
      more.add(memory_kind::device, "own: more", grows_by);
      grown.emplace(stream.device(), more);
    }
    train::metrics sums;
    gpu::copy(stream, &sums, at.sums, sizeof sums);
    stream.synchronize();
    sums.rows += batch.valid_rows();
    gpu::copy(stream, at.sums, &sums, sizeof sums);
    stream.synchronize();
  }
  void visit_state(const train::state_visitor& visit) { visit({"/model/state", type::float32, {1}, state}); }
};

train::trainer_options options_of(std::size_t batch_rows, std::size_t accumulate = 1) {
  return {.stage = {.optimizer = train::sgd{.learning_rate = 0.05}, .rows = batch_rows},
          .accumulate = accumulate,
          .check_every = 2};
}

/// A model with its trainer and pipelines in one planned memory.
struct own_run {
  linear_model& model;
  train::planned_run planned;
  train::trainer trainer;

  own_run(const training_file& data, linear_model& m, const train::trainer_options& options, fault_seam faults = {})
      : own_run(m, options, data.open(options.stage.rows), data.open(options.stage.rows), std::move(faults)) {}
  own_run(linear_model& m, const train::trainer_options& options, pipeline::opened training, pipeline::opened testing,
          fault_seam faults = {})
      : model(m),
        planned([&] {
          const auto plan = train::plan(gpu::device::host(), {}, train::functions_of(model), training, &testing);
          return train::build(plan, std::move(training), std::move(testing), std::move(faults));
        }()),
        trainer(gpu::stream_ref{}, options, planned.memory, train::functions_of(model)) {}

  std::vector<float> weights() const { return {model.weight, model.weight + inputs}; }
};

/// The rows in the file's order.
pipeline::opened in_order(const training_file& data, std::size_t batch_rows) {
  const auto source = pipeline::source{}
                          .field("x", {{data.file, "/x"}}, {.as = type::float32})
                          .field("label", {{data.file, "/label"}}, {.as = type::int32});
  return (pipeline::read(source) | pipeline::batch_options{.rows = batch_rows, .held = 0}).open();
}

/// What a model of the user's throws.
struct tired : std::runtime_error {
  tired() : std::runtime_error("it is tired") {}
};

/// The pipeline's error that the call ends with, with a single sentence.
std::optional<pipeline::error> failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const pipeline::error& e) {
    return e;
  }
  BOOST_ERROR("no pipeline::error");
  return std::nullopt;
}

/// Gradient descent over all rows at once, in float64.
std::vector<double> descended(const training_file& data, int steps) {
  std::vector<double> weight(inputs);
  const std::size_t rows = data.labels.size();
  for (int step = 0; step < steps; ++step) {
    std::vector<double> gradient(inputs);
    for (std::size_t i = 0; i < rows; ++i) {
      double off = -data.labels[i];
      for (std::size_t j = 0; j < inputs; ++j) off += weight[j] * static_cast<double>(data.x[i * inputs + j]);
      for (std::size_t j = 0; j < inputs; ++j) gradient[j] += off * static_cast<double>(data.x[i * inputs + j]);
    }
    for (std::size_t j = 0; j < inputs; ++j) weight[j] -= 0.05 * gradient[j] / static_cast<double>(rows);
  }
  return weight;
}

/// Counts uses of the places where device and pinned memory are allocated.
struct allocation_counter final : fault_injector {
  std::size_t count = 0;
  fault before(fault_site site, std::string_view, std::uint64_t, std::size_t) override {
    count += site == fault_site::allocate_device || site == fault_site::allocate_pinned ? 1 : 0;
    return {};
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(own_model)

BOOST_AUTO_TEST_CASE(a_model_of_the_users_is_trained_by_the_loop_whatever_its_batches) {
  const training_file data;
  const auto expected = descended(data, 3);
  for (const auto& [rows, accumulate] : {std::pair{1000u, 1u}, std::pair{64u, 16u}, std::pair{300u, 4u}}) {
    linear_model model;
    own_run run(data, model, options_of(rows, accumulate));
    for (int epoch = 0; epoch < 3; ++epoch) {
      const auto done = run.trainer.train_epoch(run.planned.training);
      BOOST_TEST(done.complete);
      BOOST_TEST(done.training.rows == 1000u);
      BOOST_TEST(done.steps == static_cast<std::uint64_t>(epoch) + 1);
    }
    for (std::size_t j = 0; j < inputs; ++j)
      BOOST_TEST(std::abs(static_cast<double>(model.weight[j]) - expected[j]) < 1e-6);
    const auto before = run.weights();
    const auto tested = run.trainer.evaluate(*run.planned.testing);
    BOOST_TEST(tested.rows == 1000u);
    BOOST_TEST(tested.loss() > 0);
    BOOST_TEST(run.weights() == before, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(a_run_that_stops_within_a_step_goes_on_to_the_same_bits) {
  const training_file data;
  const auto options = options_of(64, 3);
  linear_model whole_model, first_model, second_model;
  own_run whole(data, whole_model, options);
  whole.trainer.train_epoch(whole.planned.training);
  const auto expected = whole.trainer.train_epoch(whole.planned.training);

  own_run first(data, first_model, options);
  first.trainer.train_epoch(first.planned.training);
  std::stop_source stop;
  const auto part = first.trainer.train_epoch(first.planned.training, stop.get_token(),
                                              [&](const train::epoch_progress&) { stop.request_stop(); });
  BOOST_TEST(!part.complete);
  const auto checkpoint = data.path("own.h5");
  first.trainer.save(checkpoint);
  own_run second(data, second_model, options);
  second.trainer.resume(checkpoint);
  second_model.steps_seen = part.steps;
  BOOST_TEST(second.trainer.position().next_batch == first.trainer.position().next_batch);
  const auto done = second.trainer.train_epoch(second.planned.training);
  BOOST_TEST(done.complete);
  BOOST_TEST(second.weights() == whole.weights(), boost::test_tools::per_element());
  BOOST_TEST(done.training.loss_sum == expected.training.loss_sum);
  BOOST_TEST(done.steps == expected.steps);
}

BOOST_AUTO_TEST_CASE(checkpoints_of_other_models_are_refused_with_both_sides) {
  const training_file data;
  linear_model model, other{.called = "another model"};
  own_run run(data, model, options_of(64));
  const auto checkpoint = data.path("own.h5");
  run.trainer.save(checkpoint);
  own_run another(data, other, options_of(64));
  const auto names_both = [](const train::error& e) {
    const std::string text = e.what();
    return text.find("linear regression") != std::string::npos && text.find("another model") != std::string::npos;
  };
  BOOST_CHECK_EXCEPTION(another.trainer.resume(checkpoint), train::error, names_both);
  const auto only_that_model = [](const train::error& e) {
    return std::string(e.what()).ends_with("it holds a model of the user's own, which only that model can use");
  };
  BOOST_CHECK_EXCEPTION(train::options_of(checkpoint), train::error, only_that_model);
  BOOST_CHECK_EXCEPTION(train::labels_of(checkpoint), train::error, only_that_model);
  // A stage of Penstock's, with other classes and another step size, too.
  auto stage = test::small_trainer(32);
  stage.class_names = {"a", "b", "c", "d"};
  BOOST_CHECK_EXCEPTION(train::check_checkpoint(checkpoint, stage), train::error, [&](const train::error& e) {
    return std::string(e.what()).find(": its model is \"linear regression\", and this run's is \"" +
                                      train::to_text(stage.stage.model) + '"') != std::string::npos;
  });
  BOOST_CHECK_THROW(run.trainer.stage(), std::logic_error);
  BOOST_CHECK_THROW(run.trainer.normalise_from(run.planned.training), std::logic_error);
}

BOOST_AUTO_TEST_CASE(one_without_a_name_is_refused_before_it_is_bound) {
  const training_file data;
  linear_model nameless{.called = ""};
  BOOST_CHECK_EXCEPTION(own_run(data, nameless, options_of(64)), std::invalid_argument,
                        [](const auto& e) { return std::string(e.what()).find("an empty name") != std::string::npos; });
  BOOST_TEST(nameless.weight == nullptr);
}

BOOST_AUTO_TEST_CASE(a_loss_that_is_not_finite_ends_the_run) {
  const training_file data;
  linear_model model{.first_weight = std::numeric_limits<float>::infinity()};
  own_run run(data, model, options_of(64));
  BOOST_CHECK_EXCEPTION(run.trainer.train_epoch(run.planned.training), train::error, [](const train::error& e) {
    return std::string(e.what()).find("loss of linear regression is not finite") != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(so_it_does_whatever_penstocks_own_stage_would_skip) {
  const training_file data;
  linear_model model{.first_weight = std::numeric_limits<float>::infinity()};
  auto options = options_of(64);
  options.stage.non_finite = train::non_finite::skip;
  own_run run(data, model, options);
  BOOST_CHECK_EXCEPTION(run.trainer.train_epoch(run.planned.training), train::error, [](const train::error& e) {
    return std::string(e.what()).find("loss of linear regression is not finite") != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(what_it_throws_in_a_step_is_kept_and_has_epoch_step_rows_and_file) {
  const training_file data;
  linear_model model;
  own_run run(model, options_of(64, 2), in_order(data, 64), in_order(data, 64));
  run.trainer.train_epoch(run.planned.training);
  // 16 batches of an epoch are 8 steps: batch 3 of the second epoch is in its second step, the tenth of the run.
  model.misbehave = [](const pipeline::batch& batch, const train::step_place&) {
    if (batch.index() == 3) throw tired();
  };
  const auto failed = failure_of([&] { run.trainer.train_epoch(run.planned.training); });
  BOOST_REQUIRE(failed.has_value());
  const std::string file = data.file.string();
  BOOST_TEST(failed->what() ==
             "training step 9 failed at rows 192-255 of epoch 1, from /x of " + file + ": it is tired");
  BOOST_TEST(failed->where().stage == "training step");
  BOOST_TEST(failed->where().epoch == 1u);
  BOOST_TEST(failed->where().first == 192u);
  BOOST_TEST(failed->where().count == 64u);
  BOOST_TEST(failed->where().rows == "rows 192-255");
  BOOST_TEST(failed->where().file == file);
  BOOST_TEST(failed->where().dataset == "/x");
  BOOST_CHECK_THROW(std::rethrow_exception(failed->cause()), tired);
  model.misbehave = nullptr;
  model.steps_seen = 9;  // one whole step of the second epoch was made
  BOOST_TEST(run.trainer.train_epoch(run.planned.training).complete);
}

BOOST_AUTO_TEST_CASE(so_it_has_in_an_evaluation_whatever_its_type) {
  const training_file data;
  linear_model model;
  own_run run(model, options_of(300), in_order(data, 300), in_order(data, 300));
  model.misbehave = [](const pipeline::batch& batch, const train::step_place&) {
    if (batch.index() == 3) batch.field<float>("z");  // std::invalid_argument
  };
  const auto failed = failure_of([&] { run.trainer.evaluate(*run.planned.testing); });
  BOOST_REQUIRE(failed.has_value());
  BOOST_TEST(failed->what() == "evaluation failed at rows 900-999 of epoch 0, from /x of " + data.file.string() +
                                   ": the batch has no field 'z'; it has x, label");
  BOOST_TEST(failed->where().stage == "evaluation");
  BOOST_CHECK_THROW(std::rethrow_exception(failed->cause()), std::invalid_argument);
  model.misbehave = [](const pipeline::batch&, const train::step_place&) { throw 5; };
  const auto odd = failure_of([&] { run.trainer.evaluate(*run.planned.testing); });
  BOOST_REQUIRE(odd.has_value());
  BOOST_TEST(std::string(odd->what()).ends_with(": unknown exception"));
}

BOOST_AUTO_TEST_CASE(what_has_its_place_and_what_an_observer_throws_pass_as_they_are) {
  const training_file data;
  linear_model model;
  own_run run(model, options_of(64), in_order(data, 64), in_order(data, 64));
  const auto observe = [](const train::epoch_progress&) { throw tired(); };
  BOOST_CHECK_THROW(run.trainer.train_epoch(run.planned.training, {}, observe), tired);
  const auto throws = [&](auto what) {
    model.misbehave = [what](const pipeline::batch&, const train::step_place&) { throw what; };
  };
  throws(train::error("a row of its own", {.rows = {7}}));
  BOOST_CHECK_EXCEPTION(run.trainer.train_epoch(run.planned.training), train::error,
                        [](const train::error& e) { return e.where().rows == std::vector<std::uint64_t>{7}; });
  throws(pipeline::error("a stage of its own", {.stage = "own"}));
  const auto failed = failure_of([&] { run.trainer.evaluate(*run.planned.testing); });
  BOOST_REQUIRE(failed.has_value());
  BOOST_TEST(failed->where().stage == "own");
  throws(pipeline::stopped());
  BOOST_CHECK_THROW(run.trainer.evaluate(*run.planned.testing), pipeline::stopped);
}

BOOST_AUTO_TEST_CASE(of_a_gpu_which_tells_late_the_sentence_says_at_or_before, test::on_gpu()) {
  const training_file data;
  row_counter model;
  auto functions = train::functions_of(model);
  functions.step = [](const pipeline::batch& batch, const train::step_place&) {
    if (batch.index() == 1) throw tired();
  };
  auto rows = in_order(data, 64);
  const auto plan = train::plan(test::first_gpu(), {}, functions, rows);
  auto planned = train::build(plan, std::move(rows));
  const gpu::stream stream(test::first_gpu());
  train::trainer trainer(stream, options_of(64), planned.memory, functions);
  const auto failed = failure_of([&] { trainer.train_epoch(planned.training); });
  BOOST_REQUIRE(failed.has_value());
  BOOST_TEST(std::string(failed->what()).starts_with("training step 1 failed at or before rows 64-127 of epoch 0"));
}

BOOST_AUTO_TEST_CASE(what_fields_it_takes_is_its_own_affair) {
  const training_file data;
  linear_model model;
  auto options = options_of(64);
  options.x2 = "of its own";
  own_run run(data, model, options);
  BOOST_TEST(run.trainer.train_epoch(run.planned.training).complete);
}

BOOST_AUTO_TEST_CASE(the_first_reports_of_an_epoch_are_not_of_the_one_before_on_cuda, test::on_gpu()) {
  const training_file data;
  row_counter model;
  auto options = options_of(25);
  options.check_every = 1;
  auto rows = data.open(25);
  const auto plan = train::plan(test::first_gpu(), {}, train::functions_of(model), rows);
  auto planned = train::build(plan, std::move(rows));
  const gpu::stream stream(test::first_gpu());
  train::trainer trainer(stream, options, planned.memory, train::functions_of(model));
  for (int epoch = 0; epoch < 3; ++epoch) {
    const auto done = trainer.train_epoch(planned.training, {}, [](const train::epoch_progress& now) {
      BOOST_TEST(now.training.rows <= now.batches * 25);
    });
    BOOST_TEST(done.training.rows == 1000u);
  }
}

BOOST_AUTO_TEST_CASE(its_memory_is_a_part_of_the_budget) {
  const training_file data;
  linear_model model;
  const auto training = data.open(64);
  BOOST_CHECK_EXCEPTION(
      train::plan(gpu::device::host(), {.device_bytes = 1000}, train::functions_of(model), training), gpu::budget_error,
      [](const gpu::budget_error& e) { return std::string(e.what()).find("own: gradients") != std::string::npos; });
}

BOOST_AUTO_TEST_CASE(nothing_is_allocated_after_it_is_bound) {
  const training_file data;
  const auto counter = std::make_shared<allocation_counter>();
  linear_model model;
  own_run run(data, model, options_of(64, 2), counter);
  const std::size_t at_bind = counter->count;
  BOOST_TEST(at_bind > 0u);
  const auto allocated = [&] {
    const test::large_allocations large(64_KiB);
    run.trainer.train_epoch(run.planned.training);
    run.trainer.evaluate(*run.planned.testing);
    return large.count();
  };
  allocated();                          // the readers' memory is there after the first epoch
  BOOST_TEST(model.allocations == 0u);  // of any size, from the first step on
  BOOST_TEST(allocated() == 0u);
  BOOST_TEST(model.allocations == 0u);
  BOOST_TEST(counter->count == at_bind);
  // And a model that does allocate is seen, whether much or little.
  model.scratch_values = 1;
  BOOST_TEST(allocated() == 0u);
  BOOST_TEST(model.allocations > 0u);
  model.scratch_values = 100'000;
  BOOST_TEST(allocated() > 0u);
}

BOOST_AUTO_TEST_CASE(nor_is_memory_of_a_gpu, test::on_gpu()) {
  const training_file data;
  row_counter model;
  auto training = data.open(64), testing = data.open(64);
  const auto plan = train::plan(test::first_gpu(), {}, train::functions_of(model), training, &testing);
  auto planned = train::build(plan, std::move(training), std::move(testing));
  const gpu::stream stream(test::first_gpu());
  train::trainer trainer(stream, options_of(64, 2), planned.memory, train::functions_of(model));
  const auto free_after_an_epoch = [&] {
    trainer.train_epoch(planned.training);
    trainer.evaluate(*planned.testing);
    return gpu::memory_of(test::first_gpu()).free_bytes;
  };
  const std::size_t free = free_after_an_epoch();  // what CUDA loads for the first batches is there
  BOOST_TEST(free_after_an_epoch() == free);
  // And a model that does allocate is seen, as far as the driver counts: in pages of 2 MiB.
  model.grows_by = 4_MiB;
  BOOST_TEST(free_after_an_epoch() + 4_MiB <= free);
}

BOOST_AUTO_TEST_SUITE_END()
