#include "fixture.hpp"
#include "gpu.hpp"
#include "large_allocations.hpp"
#include "training_file.hpp"

#include <penstock/train/error.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <cmath>
#include <limits>
#include <stop_token>

using namespace penstock;
using namespace penstock::literals;
using penstock::test::small_trainer;
using penstock::test::training_file;
using penstock::test::training_run;

namespace {

struct counting_faults final : fault_injector {
  std::atomic<int> allocations{0};
  fault before(fault_site site, std::string_view, std::uint64_t, std::size_t) override {
    if (site == fault_site::allocate_device || site == fault_site::allocate_pinned || site == fault_site::allocate_host)
      ++allocations;
    return {};
  }
};

/// Weights and moments after two epochs, the second with evaluation before it.
std::vector<float> train_two_epochs(const training_file& data, const train::trainer_options& options) {
  training_run run(data, options);
  run.trainer.normalise_from(run.planned.training);
  run.trainer.train_epoch(run.planned.training);
  run.trainer.evaluate(*run.planned.testing);
  run.trainer.train_epoch(run.planned.training);
  return run.weights();
}

void check_learning(gpu::device device) {
  const training_file data;
  training_run run(data, small_trainer(), device);
  run.trainer.normalise_from(run.planned.training);
  train::epoch_progress last;
  for (int epoch = 0; epoch < 8; ++epoch) last = run.trainer.train_epoch(run.planned.training);
  BOOST_TEST(last.complete);
  BOOST_TEST(last.epoch == 7u);
  BOOST_TEST(last.steps == 8 * 16u);
  BOOST_TEST(last.training.rows == 1000u);
  const train::metrics tested = run.trainer.evaluate(*run.planned.testing);
  BOOST_TEST(tested.rows == 1000u);
  BOOST_TEST(tested.accuracy() > 0.93);
  BOOST_TEST(std::abs(tested.loss() - last.training.loss()) < 0.1);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(trainer)

BOOST_AUTO_TEST_CASE(epochs_from_a_file_lead_to_accuracy) { check_learning(gpu::device::host()); }
BOOST_AUTO_TEST_CASE(epochs_from_a_file_lead_to_accuracy_on_cuda, test::on_gpu()) { check_learning(test::first_gpu()); }

BOOST_AUTO_TEST_CASE(the_same_run_gives_the_same_bits_with_any_number_of_threads) {
  const training_file data;
  auto options = small_trainer();
  const auto first = train_two_epochs(data, options);
  for (const std::size_t threads : {1u, 2u, 3u}) {
    options.stage.threads = threads;
    BOOST_TEST(test::same_bits<float>(train_two_epochs(data, options), first), "with " << threads << " threads");
  }
}

BOOST_AUTO_TEST_CASE(batches_and_accumulation_of_the_same_product_give_the_same_training) {
  // 1000 rows: the last step of an epoch has 40, and for most splits an odd number of batches. Momentum adds what
  // gradients differ by; AdamW's first steps, of size learning_rate * sign, would magnify it.
  const training_file data;
  const auto with_rows = [&](std::size_t rows, std::size_t accumulate) {
    train::trainer_options options = small_trainer(rows, accumulate);
    options.stage.optimizer = train::sgd{.learning_rate = 0.05, .momentum = 0.9};
    return train_two_epochs(data, options);
  };
  const auto whole = with_rows(64, 1);
  for (const std::size_t parts : {2u, 4u, 8u, 64u}) {
    const auto split = with_rows(64 / parts, parts);
    double worst = 0, largest = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      worst = std::max(worst, std::abs(double(whole[i]) - double(split[i])));
      largest = std::max(largest, std::abs(double(whole[i])));
    }
    BOOST_TEST(worst < 1e-5 * largest, "in " << parts << " parts: " << worst << " of " << largest);
  }
}

BOOST_AUTO_TEST_CASE(a_short_last_batch_and_a_padded_one_train_alike) {
  const training_file data(203);
  const auto weights = [&](pipeline::last_batch last) {
    training_run run(data, small_trainer(), gpu::device::host(), {}, last);
    BOOST_TEST(run.trainer.train_epoch(run.planned.training).training.rows == 203u);
    return run.weights();
  };
  const auto kept = weights(pipeline::last_batch::keep), padded = weights(pipeline::last_batch::pad);
  for (std::size_t i = 0; i < kept.size(); ++i) BOOST_TEST(std::abs(kept[i] - padded[i]) < 1e-4f);
}

BOOST_AUTO_TEST_CASE(normalisation_is_the_files_mean_and_deviation) {
  const training_file data(777);
  training_run run(data, small_trainer());
  run.trainer.normalise_from(run.planned.training);
  const train::input_statistics& seen = run.trainer.stage().normalisation();
  for (std::size_t j = 0; j < training_file::columns; ++j) {
    double mean = 0, squares = 0;
    for (std::size_t row = 0; row < 777; ++row) mean += data.x[row * training_file::columns + j] / 777.0;
    for (std::size_t row = 0; row < 777; ++row) squares += std::pow(data.x[row * training_file::columns + j] - mean, 2);
    BOOST_TEST(std::abs(seen.mean[j] - mean) < 1e-12);
    BOOST_TEST(std::abs(seen.deviation[j] - std::sqrt(squares / 777)) < 1e-12);
  }
}

BOOST_AUTO_TEST_CASE(a_value_that_is_not_finite_ends_the_run_with_its_row) {
  training_file data;
  data.x[613 * training_file::columns + 2] = std::numeric_limits<float>::quiet_NaN();
  data.write();
  const auto names_the_row = [](const train::error& e) {
    return e.where().rows == std::vector<std::uint64_t>{613} &&
           std::string(e.what()).find("data.h5:/x row 613") != std::string::npos;
  };
  training_run run(data, small_trainer());
  BOOST_CHECK_EXCEPTION(run.trainer.train_epoch(run.planned.training), train::error, names_the_row);
  for (const float weight : run.weights()) BOOST_TEST_REQUIRE(std::isfinite(weight));
  training_run other(data, small_trainer());
  BOOST_CHECK_EXCEPTION(other.trainer.normalise_from(other.planned.training), train::error, names_the_row);
  BOOST_CHECK_EXCEPTION(training_run(data, small_trainer()).trainer.evaluate(*run.planned.testing), train::error,
                        names_the_row);
}

BOOST_AUTO_TEST_CASE(a_bad_row_of_the_test_set_is_named_in_whatever_epoch_training_is) {
  training_file data;
  training_run run(data, small_trainer());
  run.trainer.train_epoch(run.planned.training);
  data.x[613 * training_file::columns + 2] = std::numeric_limits<float>::quiet_NaN();
  data.write();
  training_run damaged(data, small_trainer());
  BOOST_CHECK_EXCEPTION(run.trainer.evaluate(*damaged.planned.testing), train::error,
                        [](const train::error& e) { return e.where().rows == std::vector<std::uint64_t>{613}; });
}

BOOST_AUTO_TEST_CASE(steps_that_are_not_finite_are_skipped_and_counted_on_request) {
  training_file data;
  data.x[613 * training_file::columns + 2] = std::numeric_limits<float>::infinity();
  data.write();
  auto options = small_trainer();
  options.stage.non_finite = train::non_finite::skip;
  training_run run(data, options);
  run.trainer.normalise_from(run.planned.training);
  for (std::uint64_t epoch = 1; epoch <= 2; ++epoch) {
    const train::epoch_progress done = run.trainer.train_epoch(run.planned.training);
    BOOST_TEST(done.skipped == epoch);
    BOOST_TEST(done.steps == epoch * 15);
    BOOST_TEST(done.training.rows == 1000u - 64);
  }
}

BOOST_AUTO_TEST_CASE(an_epoch_of_which_every_step_is_skipped_ends_the_run) {
  training_file data;
  for (std::size_t row = 0; row < 1000; ++row)
    data.x[row * training_file::columns] = std::numeric_limits<float>::quiet_NaN();
  data.write();
  for (const auto precision : {train::precision::float32, train::precision::fp16}) {
    auto options = small_trainer();
    options.stage.non_finite = train::non_finite::skip;
    options.stage.precision = precision;
    training_run run(data, options);
    BOOST_CHECK_EXCEPTION(run.trainer.train_epoch(run.planned.training), train::error, [](const train::error& e) {
      return std::string(e.what()).find("16 were skipped") != std::string::npos;
    });
    BOOST_TEST(run.trainer.position().epoch == 0u);
    BOOST_TEST(run.trainer.position().next_batch == 0u);
  }
}

// The scale of a first epoch may have to fall more often than it has steps.
BOOST_AUTO_TEST_CASE(an_epoch_in_which_the_loss_scale_fell_is_no_failure) {
  const training_file data(64);
  auto options = small_trainer();
  options.stage.precision = train::precision::fp16;
  training_run run(data, options);
  run.trainer.stage().set_loss_scale(0x1p24);
  const train::epoch_progress first = run.trainer.train_epoch(run.planned.training);
  BOOST_TEST(first.complete);
  BOOST_TEST(first.skipped == 1u);
  BOOST_TEST(first.steps == 0u);
}

BOOST_AUTO_TEST_CASE(a_label_outside_the_classes_ends_the_run_with_its_row) {
  training_file data;
  data.labels[401] = 4;
  data.write();
  training_run run(data, small_trainer());
  BOOST_CHECK_EXCEPTION(run.trainer.train_epoch(run.planned.training), train::error, [](const train::error& e) {
    return e.where().rows == std::vector<std::uint64_t>{401} &&
           std::string(e.what()).find("0 to 3") != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(fields_that_do_not_fit_the_model_are_refused) {
  const training_file data;
  auto options = small_trainer();
  options.stage.model.inputs = 13;
  training_run run(data, options);
  BOOST_CHECK_THROW(run.trainer.train_epoch(run.planned.training), std::invalid_argument);
  options = small_trainer();
  options.x = "label";
  training_run other(data, options);
  BOOST_CHECK_THROW(other.trainer.train_epoch(other.planned.training), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(labels_of_several_values_in_a_row_are_refused) {
  const training_file data;
  const auto pairs = data.path("pairs.h5");
  const std::vector<std::uint8_t> two_a_row(2 * data.labels.size(), 1);
  io::writer to(pairs);
  to.create("/label", type::uint8, {data.labels.size(), 2});
  to.write_rows("/label", 0, data.labels.size(), std::as_bytes(std::span(two_a_row)));
  to.commit();
  auto source = pipeline::source{}
                    .field("x", {{data.file, "/x"}}, {.as = type::float32})
                    .field("label", {{pairs, "/label"}}, {.as = type::int32});
  auto rows = (pipeline::read(source, pipeline::sequential{}) | pipeline::batched({.rows = 64}))
                  .build(gpu::device::host(), {.device_bytes = 16_MiB, .pinned_bytes = 16_MiB});
  training_run run(data, small_trainer());
  BOOST_CHECK_EXCEPTION(run.trainer.train_epoch(rows), std::invalid_argument, [](const std::invalid_argument& e) {
    return std::string(e.what()).find("a row of field 'label' has 2 labels") != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(a_stored_weight_that_is_no_field_is_refused_with_those_that_are_there) {
  const training_file data;
  auto options = small_trainer();
  options.stored_weight = "wieght";
  training_run run(data, options);
  BOOST_CHECK_EXCEPTION(
      run.trainer.train_epoch(run.planned.training), std::invalid_argument, [](const std::invalid_argument& e) {
        return std::string(e.what()) == "stored_weight: no stored field is named \"wieght\"; there are x, label";
      });
}

BOOST_AUTO_TEST_CASE(a_stop_between_steps_is_gone_on_from) {
  const training_file data;
  for (const std::size_t accumulate : {1u, 3u}) {
    training_run straight(data, small_trainer(64, accumulate)), stopped(data, small_trainer(64, accumulate));
    straight.trainer.train_epoch(straight.planned.training);
    std::stop_source stop;
    const auto first = stopped.trainer.train_epoch(stopped.planned.training, stop.get_token(),
                                                   [&](const train::epoch_progress&) { stop.request_stop(); });
    BOOST_TEST(!first.complete);
    BOOST_TEST(first.batches == 2 * accumulate);
    const auto rest = stopped.trainer.train_epoch(stopped.planned.training);
    BOOST_TEST(rest.complete);
    BOOST_TEST(rest.training.rows == 1000u);
    BOOST_TEST(test::same_bits<float>(stopped.weights(), straight.weights()));
  }
}

BOOST_AUTO_TEST_CASE(no_slab_is_allocated_from_the_first_step_on_and_nothing_large_after_an_epoch_and_its_evaluation) {
  const training_file data(4000);
  const auto faults = std::make_shared<counting_faults>();
  training_run run(data, small_trainer(256), gpu::device::host(), faults);
  const int before = faults->allocations;
  run.trainer.normalise_from(run.planned.training);
  run.trainer.train_epoch(run.planned.training);
  run.trainer.evaluate(*run.planned.testing);
  const test::large_allocations large(64 << 10);
  for (int epoch = 0; epoch < 3; ++epoch) {
    run.trainer.train_epoch(run.planned.training);
    run.trainer.evaluate(*run.planned.testing);
  }
  BOOST_TEST(large.count() == 0u);
  BOOST_TEST(faults->allocations == before);
  BOOST_TEST(before == 2);  // one slab of device memory, one of pinned memory
}

BOOST_AUTO_TEST_CASE(device_memory_in_use_stays_within_the_plan_on_cuda, test::on_gpu()) {
  const training_file data(2000);
  train::trainer_options options = small_trainer(256);
  options.stage.model.hidden = {1024, 512};
  const gpu::device device = test::first_gpu();
  const auto epoch_in_use = [&](int epochs) {
    training_run run(data, options, device);
    for (int epoch = 0; epoch < epochs; ++epoch) {
      run.trainer.train_epoch(run.planned.training);
      run.trainer.evaluate(*run.planned.testing);
    }
    return std::pair{gpu::memory_of(device).free_bytes, run.planned.memory->bytes(gpu::memory_kind::device)};
  };
  // What CUDA loads for the first step is outside the budget: a run whose memory is freed again brings it in.
  epoch_in_use(1);
  const std::size_t free_before = gpu::memory_of(device).free_bytes;
  for (const int epochs : {1, 3}) {
    const auto [free_within, planned] = epoch_in_use(epochs);
    BOOST_TEST(free_before - free_within <= align_up(planned, 2_MiB));
  }
}

BOOST_AUTO_TEST_CASE(pipelines_of_other_batches_are_refused_before_anything_is_done) {
  const training_file data;
  training_run run(data, small_trainer(64)), other(data, small_trainer(50));
  const auto before = run.weights();
  const auto names_both = [](const std::invalid_argument& e) {
    const std::string text = e.what();
    return text.find("64 rows") != std::string::npos && text.find("50 rows") != std::string::npos;
  };
  BOOST_CHECK_EXCEPTION(run.trainer.train_epoch(other.planned.training), std::invalid_argument, names_both);
  BOOST_CHECK_EXCEPTION(run.trainer.normalise_from(other.planned.training), std::invalid_argument, names_both);
  BOOST_CHECK_EXCEPTION(run.trainer.evaluate(*other.planned.testing), std::invalid_argument, names_both);
  BOOST_TEST(run.weights() == before, boost::test_tools::per_element());
  BOOST_TEST(run.trainer.train_epoch(run.planned.training).complete);
}

BOOST_AUTO_TEST_SUITE_END()
