// What the loop is told without waiting for CUDA lags behind, but never behind what was set since.
#include "device_stage.hpp"
#include "gpu.hpp"
#include "training_file.hpp"

#include <penstock/train/error.hpp>

#include <boost/test/unit_test.hpp>

#include <limits>

using namespace penstock;
using penstock::test::device_stage;
using penstock::test::rows_of;
using penstock::test::small_trainer;
using penstock::test::training_file;
using penstock::test::training_run;
using train::progress;

namespace {

const train::stage_options small{.model = {.inputs = 20, .hidden = {16}, .outputs = 4}, .rows = 64};

/// 40 steps in an epoch; the device is looked at, without waiting for it, after each.
train::trainer_options often_checked() {
  auto options = small_trainer(25);
  options.check_every = 1;
  return options;
}

/// An epoch is trained after `fail` has met a bad row, which is mended then.
template <class Fail>
void check_that_training_goes_on(Fail fail) {
  const training_file good;
  training_run run(good, often_checked(), test::first_gpu());
  training_file bad = good;
  bad.x[613 * training_file::columns + 2] = std::numeric_limits<float>::quiet_NaN();
  bad.write();
  training_run of_bad(bad, often_checked(), test::first_gpu());
  BOOST_CHECK_THROW(fail(run.trainer, of_bad.planned), train::error);
  good.write();
  training_run of_good(good, often_checked(), test::first_gpu());
  const auto done = run.trainer.train_epoch(of_good.planned.training);
  BOOST_TEST(done.complete);
  BOOST_TEST(done.training.rows == 1000u);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(latest_progress)

BOOST_AUTO_TEST_CASE(a_bad_row_is_forgotten_where_steps_are_set, test::on_gpu()) {
  rows_of<float> data(64, 20, 4);
  data.x[17 * 20] = std::numeric_limits<float>::quiet_NaN();
  device_stage<float> s(test::first_gpu(), small, data);
  s.accumulate(0, 64, 64);
  s.stage.update(0.01);
  BOOST_TEST(s.stage.progress().bad_input == 17u);
  s.stage.set_steps(7, 3);
  BOOST_TEST(s.stage.latest_progress().bad_input == progress::no_row);
  BOOST_TEST(s.stage.latest_progress().steps == 7u);
  BOOST_TEST(s.stage.latest_progress().skipped == 3u);
}

BOOST_AUTO_TEST_CASE(a_loss_scale_is_known_once_it_is_set, test::on_gpu()) {
  const rows_of<float> data(64, 20, 4);
  train::stage_options options = small;
  options.precision = train::precision::fp16;
  device_stage<float> s(test::first_gpu(), options, data);
  BOOST_TEST(s.stage.latest_progress().loss_scale == 65536);
  s.stage.set_loss_scale(4, 5);
  BOOST_TEST(s.stage.latest_progress().loss_scale == 4);
  BOOST_TEST(s.stage.latest_progress().clean_steps == 5u);
}

BOOST_AUTO_TEST_CASE(metrics_that_were_set_are_not_those_of_before, test::on_gpu()) {
  const rows_of<float> data(64, 20, 4);
  device_stage<float> s(test::first_gpu(), small, data);
  s.accumulate(0, 64, 64);
  s.stage.update(0.01);
  s.stage.latest_progress();  // asks: the answer is of before the reset
  s.stage.reset({.rows = 5});
  (void)s.item("train: parameters");  // waits for the stream, and so for that answer
  BOOST_TEST(s.stage.latest_progress().running.rows == 5u);
  BOOST_TEST(s.stage.latest_progress().at_step.rows == 5u);
}

BOOST_AUTO_TEST_CASE(a_run_that_failed_goes_on_from_its_checkpoint_with_mended_data, test::on_gpu()) {
  const training_file good;
  check_that_training_goes_on([&](train::trainer& trainer, train::planned_run& bad) {
    try {
      trainer.train_epoch(bad.training);
    } catch (const train::error&) {
      trainer.save(good.path("c.h5"));
      trainer.resume(good.path("c.h5"));
      throw;
    }
  });
}

BOOST_AUTO_TEST_CASE(so_does_one_whose_test_set_was_mended, test::on_gpu()) {
  check_that_training_goes_on([](train::trainer& trainer, train::planned_run& bad) { trainer.evaluate(*bad.testing); });
}

BOOST_AUTO_TEST_CASE(so_does_one_whose_means_could_not_be_taken, test::on_gpu()) {
  check_that_training_goes_on(
      [](train::trainer& trainer, train::planned_run& bad) { trainer.normalise_from(bad.training); });
}

BOOST_AUTO_TEST_CASE(the_first_reports_of_an_epoch_are_not_of_the_one_before, test::on_gpu()) {
  const training_file data;
  training_run run(data, often_checked(), test::first_gpu());
  for (int epoch = 0; epoch < 3; ++epoch)
    run.trainer.train_epoch(run.planned.training, {}, [](const train::epoch_progress& now) {
      BOOST_TEST(now.training.rows <= now.batches * 25);
    });
}

BOOST_AUTO_TEST_SUITE_END()
