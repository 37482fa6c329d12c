#include "fixture.hpp"
#include "training_file.hpp"

#include <penstock/io/error.hpp>
#include <penstock/train/error.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>
#include <ostream>
#include <stop_token>
#include <string>

using namespace penstock;
using penstock::test::small_trainer;
using penstock::test::training_file;
using penstock::test::training_run;

namespace {

constexpr std::size_t bad_row = 613;

enum class fault_of { input, label, both };
std::ostream& operator<<(std::ostream& to, fault_of what) {
  return to << (what == fault_of::input ? "input" : what == fault_of::label ? "label" : "both");
}

/// 40 batches of 25 rows in steps of 3, and of 1 at the end; the device is looked at once, after all of them.
train::trainer_options seldom_checked() {
  auto options = small_trainer(25, 3);
  options.check_every = 1000;
  return options;
}

void spoil(training_file& data, fault_of what) {
  if (what != fault_of::label) data.x[bad_row * training_file::columns + 2] = std::numeric_limits<float>::quiet_NaN();
  if (what != fault_of::input) data.labels[(bad_row + 200) % data.labels.size()] = 4;
  data.write();
}

/// The batch that holds a row in the first epoch.
std::uint64_t batch_of(const training_run& run, std::uint64_t row) {
  std::uint64_t at = 0;
  while (run.planned.training.row_order().row(0, at) != row) ++at;
  return at / 25;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(going_on)

BOOST_DATA_TEST_CASE(a_run_goes_on_from_the_step_of_the_row_at_fault_once_that_is_mended,
                     boost::unit_test::data::make({fault_of::input, fault_of::label, fault_of::both}), what) {
  const auto options = seldom_checked();
  const training_file good;
  training_run straight(good, options);
  const train::epoch_progress whole = straight.trainer.train_epoch(straight.planned.training);

  training_file data = good;
  spoil(data, what);
  training_run run(data, options);
  BOOST_CHECK_THROW(run.trainer.train_epoch(run.planned.training), train::error);
  const std::uint64_t input = batch_of(run, bad_row), label = batch_of(run, (bad_row + 200) % 1000);
  const std::uint64_t first = what == fault_of::input   ? input
                              : what == fault_of::label ? label
                                                        : std::min(input, label);
  BOOST_TEST(run.trainer.position().next_batch == first / 3 * 3);
  BOOST_TEST(run.trainer.position().training.rows == first / 3 * 75);
  run.trainer.save(data.path("c.h5"));

  good.write();
  training_run mended(good, options);
  for (train::trainer* const trainer : {&mended.trainer, &run.trainer}) {  // a new one, and the one that failed
    BOOST_TEST(trainer->resume(data.path("c.h5")) == "");
    const train::epoch_progress rest = trainer->train_epoch(mended.planned.training);
    BOOST_TEST(rest.complete);
    BOOST_TEST(rest.steps == 14u);
    BOOST_TEST(rest.training.rows == 1000u);
    BOOST_TEST(rest.training.loss_sum == whole.training.loss_sum);
    BOOST_TEST(test::same_bits<float>(test::weights_of(trainer->stage()), straight.weights()));
  }
}

BOOST_AUTO_TEST_CASE(a_bad_row_of_the_test_set_leaves_training_as_it_was) {
  const training_file good;
  training_run straight(good, small_trainer()), run(good, small_trainer());
  for (training_run* each : {&straight, &run}) each->trainer.train_epoch(each->planned.training);
  training_file data = good;
  spoil(data, fault_of::input);
  training_run spoilt(data, small_trainer());
  BOOST_CHECK_THROW(run.trainer.evaluate(*spoilt.planned.testing), train::error);
  good.write();
  for (training_run* each : {&straight, &run}) each->trainer.train_epoch(straight.planned.training);
  BOOST_TEST(test::same_bits<float>(run.weights(), straight.weights()));
}

BOOST_AUTO_TEST_CASE(one_that_is_skipped_is_no_part_of_the_loss_and_is_named) {
  const training_file good;
  auto options = small_trainer();
  options.stage.non_finite = train::non_finite::skip;
  training_run whole(good, options);
  const train::metrics all = whole.trainer.evaluate(*whole.planned.testing);
  BOOST_TEST(whole.trainer.left_out() == "");

  training_file data = good;
  spoil(data, fault_of::input);
  training_run run(data, options);
  const train::metrics found = run.trainer.evaluate(*run.planned.testing);
  BOOST_TEST(run.trainer.left_out().find("row 613") != std::string::npos);
  BOOST_TEST(found.rows == 1000u);
  BOOST_TEST(found.weight_sum == 999.0);
  BOOST_TEST(std::isfinite(found.loss()));
  BOOST_TEST(found.loss_sum < all.loss_sum);  // by what one row came to: 1.4 or so with weights that know nothing
  BOOST_TEST(found.loss_sum > all.loss_sum - 20);
  BOOST_TEST(all.correct - found.correct <= 1u);
  good.write();
  run.trainer.evaluate(*whole.planned.testing);
  BOOST_TEST(run.trainer.left_out() == "");
}

BOOST_AUTO_TEST_CASE(so_does_one_that_is_met_when_means_are_taken) {
  const training_file good;
  training_run straight(good, small_trainer()), run(good, small_trainer());
  straight.trainer.train_epoch(straight.planned.training);
  training_file data = good;
  spoil(data, fault_of::input);
  training_run spoilt(data, small_trainer());
  BOOST_CHECK_THROW(run.trainer.normalise_from(spoilt.planned.training), train::error);
  good.write();
  BOOST_TEST(run.trainer.train_epoch(straight.planned.training).complete);
  BOOST_TEST(test::same_bits<float>(run.weights(), straight.weights()));
}

BOOST_AUTO_TEST_CASE(a_bad_row_of_training_is_none_of_the_test_set) {
  const training_file good;
  training_run straight(good, small_trainer());
  straight.trainer.train_epoch(straight.planned.training);
  training_file data = good;
  spoil(data, fault_of::both);
  training_run run(data, small_trainer());
  BOOST_CHECK_THROW(run.trainer.train_epoch(run.planned.training), train::error);
  const std::uint64_t at = run.trainer.position().next_batch;
  good.write();
  training_run mended(good, small_trainer());
  BOOST_TEST(run.trainer.evaluate(*mended.planned.testing).rows == 1000u);
  BOOST_TEST(run.trainer.position().next_batch == at);
  BOOST_TEST(run.trainer.train_epoch(mended.planned.training).training.rows == 1000u);
  BOOST_TEST(test::same_bits<float>(run.weights(), straight.weights()));
}

BOOST_AUTO_TEST_CASE(what_changes_the_bits_of_a_resumed_run_is_said) {
  const training_file data;
  auto options = small_trainer(32, 2);
  options.stage.optimizer = train::adamw{.learning_rate = 0.01};
  training_run(data, options).trainer.save(data.path("c.h5"));
  const auto said = [&](const train::trainer_options& other) {
    return training_run(data, other).trainer.resume(data.path("c.h5"));
  };
  BOOST_TEST(said(options) == "");
  auto other = options;
  other.schedule.epochs = 77;  // of a schedule without an end
  other.stage.recompute_layers = 2;
  other.stage.offload.optimizer = true;
  BOOST_TEST(said(other) == "");
  other.schedule.form = train::schedule::shape::cosine;
  BOOST_TEST(said(other) == "its schedule was constant, and this run's is cosine to 0 over 77 epochs");
  other = options;
  other.stage.precision = train::precision::bf16;
  other.stage.clip_norm = 0.5;
  BOOST_TEST(said(other) ==
             "its matrix products were float32, and this run's are bf16; its clipping was none, and this run's is at a "
             "norm of 0.5");
  other = options;
  other.stage.optimizer = train::adamw{.learning_rate = 0.02};
  BOOST_TEST(said(other).find("learning rate 0.01") < said(other).find("learning rate 0.02"));
  options.stage.optimizer = train::adamw{.learning_rate = 0.01, .epsilon = 1e-6};
  BOOST_TEST(said(options).find("epsilon 1e-08") < said(options).find("epsilon 1e-06"));
  BOOST_TEST(said(options).find("epsilon 1e-06") != std::string::npos);
  BOOST_TEST(said(small_trainer(64, 1)) == "its split of a step was 2 x 32 rows, and this run's is 1 x 64 rows");
}

BOOST_AUTO_TEST_CASE(another_top_k_is_said_within_an_epoch_alone) {
  const training_file data;
  auto options = small_trainer();
  options.stage.top_k = 2;
  training_run run(data, options);
  auto other = options;
  other.stage.top_k = 3;
  const auto said = [&](const train::trainer_options& how) {
    run.trainer.save(data.path("c.h5"));
    return training_run(data, how).trainer.resume(data.path("c.h5"));
  };
  BOOST_TEST(said(other) == "");
  std::stop_source stop;
  run.trainer.train_epoch(run.planned.training, stop.get_token(),
                          [&](const train::epoch_progress&) { stop.request_stop(); });
  BOOST_TEST_REQUIRE(run.trainer.position().next_batch > 0u);
  BOOST_TEST(said(options) == "");
  BOOST_TEST(said(other) == "its top-k of the epoch under way was 2, and this run's is 3");
  BOOST_TEST(run.trainer.train_epoch(run.planned.training).complete);
  BOOST_TEST(said(other) == "");
}

BOOST_AUTO_TEST_CASE(what_a_resume_refuses_shows_without_memory_for_a_run) {
  const training_file data;
  const auto options = small_trainer(64, 2);
  const auto file = data.path("c.h5");
  BOOST_CHECK_THROW(train::check_checkpoint(file, options), io::error);
  training_run(data, options).trainer.save(file);
  BOOST_CHECK_NO_THROW(train::check_checkpoint(file, options));
  BOOST_CHECK_NO_THROW(train::check_checkpoint(file, small_trainer(32, 4)));
  const auto is_refused = [&](train::trainer_options other, const std::string& words) {
    const auto says = [&](const train::error& e) { return std::string(e.what()).find(words) != std::string::npos; };
    BOOST_CHECK_EXCEPTION(train::check_checkpoint(file, other), train::error, says);
    BOOST_CHECK_EXCEPTION(training_run(data, other).trainer.resume(file), train::error, says);
  };
  is_refused(small_trainer(64, 1), "rows of a step");
  auto other = options;
  other.stage.model.hidden = {25};
  is_refused(other, "its model is");
  other = options;
  other.class_names = {"a", "b", "c", "d"};
  is_refused(other, "its classes are numbers");
  BOOST_CHECK_THROW(train::check_checkpoint(data.file, options), train::error);
}

BOOST_AUTO_TEST_SUITE_END()
