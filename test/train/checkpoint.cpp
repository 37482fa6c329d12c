#include "failing_call.hpp"
#include "fixture.hpp"
#include "training_file.hpp"

#include <penstock/bytes.hpp>
#include <penstock/io/error.hpp>
#include <penstock/train/error.hpp>

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stop_token>
#include <vector>

using namespace penstock;
using namespace penstock::literals;
using penstock::test::small_trainer;
using penstock::test::training_file;
using penstock::test::training_run;

namespace {

/// Weights and moments after `epochs` epochs without a stop.
std::vector<float> straight(const training_file& data, const train::trainer_options& options, int epochs) {
  training_run run(data, options);
  run.trainer.normalise_from(run.planned.training);
  for (int epoch = 0; epoch < epochs; ++epoch) run.trainer.train_epoch(run.planned.training);
  return run.weights();
}

/// A precondition that skips a case where h5py is not installed, and says so.
boost::test_tools::assertion_result h5py_is_there(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result there(std::system("/usr/bin/python3 -c 'import h5py' 2> /dev/null") == 0);
  there.message() << "h5py is not installed";
  return there;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(checkpoint)

BOOST_AUTO_TEST_CASE(a_resumed_run_gives_the_bits_of_the_run_that_was_not_stopped) {
  const training_file data;
  for (const auto& options : {small_trainer(64, 1), small_trainer(32, 3)}) {
    const auto expected = straight(data, options, 3);
    {
      training_run run(data, options);
      run.trainer.normalise_from(run.planned.training);
      run.trainer.train_epoch(run.planned.training);
      run.trainer.save(data.path("c.h5"));
    }
    training_run resumed(data, options);
    BOOST_TEST(resumed.trainer.resume(data.path("c.h5")) == "");
    BOOST_TEST(resumed.trainer.position().epoch == 1u);
    for (int epoch = 0; epoch < 2; ++epoch) resumed.trainer.train_epoch(resumed.planned.training);
    BOOST_TEST(test::same_bits<float>(resumed.weights(), expected));
  }
}

BOOST_AUTO_TEST_CASE(so_does_a_run_stopped_within_an_epoch) {
  const training_file data;
  const auto options = small_trainer(32, 3);
  const auto expected = straight(data, options, 2);
  train::epoch_progress whole;
  {
    training_run run(data, options);
    run.trainer.normalise_from(run.planned.training);
    run.trainer.train_epoch(run.planned.training);
    std::stop_source stop;
    run.trainer.train_epoch(run.planned.training, stop.get_token(), [&](const auto&) { stop.request_stop(); });
    run.trainer.save(data.path("c.h5"));
  }
  training_run resumed(data, options);
  resumed.trainer.resume(data.path("c.h5"));
  BOOST_TEST(resumed.trainer.position().epoch == 1u);
  BOOST_TEST(resumed.trainer.position().next_batch == 6u);
  const auto rest = resumed.trainer.train_epoch(resumed.planned.training);
  BOOST_TEST(rest.training.rows == 1000u);
  BOOST_TEST(test::same_bits<float>(resumed.weights(), expected));
}

BOOST_AUTO_TEST_CASE(weights_are_plain_datasets, *boost::unit_test::precondition(h5py_is_there)) {
  const training_file data;
  training_run run(data, small_trainer());
  run.trainer.save(data.path("c.h5"));
  const std::string command = "/usr/bin/python3 -c \"import h5py, json; f = h5py.File('" + data.path("c.h5").string() +
                              "'); a = json.loads(f.attrs['penstock']); "
                              "print(f['model/layer0/weight'].shape, f['model/layer1/bias'].shape, "
                              "f['optimizer/second_moment/layer1/weight'].dtype, f['normalisation/mean'].shape, "
                              "a['hidden'], a['steps'])\" > " +
                              data.path("out").string();
  BOOST_TEST_REQUIRE(std::system(command.c_str()) == 0);
  std::string line;
  std::ifstream text(data.path("out"));
  std::getline(text, line);
  BOOST_TEST(line == "(24, 12) (4,) float32 (12,) [24] 0");
}

BOOST_AUTO_TEST_CASE(a_checkpoint_of_another_run_is_refused_with_both_sides) {
  const training_file data;
  training_run(data, small_trainer()).trainer.save(data.path("c.h5"));
  const auto refused = [&](train::trainer_options options, const std::string& here, const std::string& there) {
    training_run run(data, options);
    const auto before = run.weights();
    BOOST_CHECK_EXCEPTION(run.trainer.resume(data.path("c.h5")), train::error, [&](const train::error& e) {
      const std::string text = e.what();
      return text.find(here) != std::string::npos && text.find(there) != std::string::npos &&
             text.find("c.h5") != std::string::npos;
    });
    BOOST_TEST(test::same_bits<float>(run.weights(), before));
  };
  auto options = small_trainer();
  options.stage.model.hidden = {25};
  refused(options, "12-25-4", "12-24-4");
  options = small_trainer();
  options.stage.optimizer = train::sgd{};
  refused(options, "sgd", "adamw");
  options = small_trainer();
  options.stage.seed = 77;
  refused(options, "77", "3");
  refused(small_trainer(64, 2), "128", "64");
}

/// Of what the device does while a checkpoint is taken in, each call fails once.
BOOST_AUTO_TEST_CASE(a_resume_that_ends_midway_leaves_a_trainer_that_does_nothing_until_one_is_whole) {
  const training_file data;
  const auto first = data.path("a.h5"), second = data.path("b.h5"), third = data.path("c.h5");
  const auto calls = std::make_shared<test::failing_call>();
  training_run run(data, small_trainer(), gpu::device::host(), {}, pipeline::last_batch::pad, calls);
  run.trainer.normalise_from(run.planned.training);
  run.trainer.save(first);
  run.trainer.train_epoch(run.planned.training);
  run.trainer.save(second);
  const auto of_second = run.weights();
  run.trainer.resume(first);
  BOOST_TEST(!test::same_bits<float>(run.weights(), of_second));
  const auto torn = [](const train::error& e) { return std::string(e.what()).find("to its end") != std::string::npos; };
  int failed = 0;
  for (int call = 0;; ++call) {
    calls->left = call;
    try {
      run.trainer.resume(second);
      break;
    } catch (const gpu::error&) {
    }
    ++failed;
    calls->left = -1;
    BOOST_CHECK_EXCEPTION(run.trainer.train_epoch(run.planned.training), train::error, torn);
    BOOST_CHECK_EXCEPTION(run.trainer.evaluate(*run.planned.testing), train::error, torn);
    BOOST_CHECK_EXCEPTION(run.trainer.save(third), train::error, torn);
    BOOST_TEST(!std::filesystem::exists(third));
    BOOST_CHECK_THROW(run.trainer.resume(data.path("none.h5")), io::error);
    BOOST_CHECK_EXCEPTION(run.trainer.save(third), train::error, torn);
    run.trainer.resume(first);
  }
  calls->left = -1;
  BOOST_TEST(failed > 12);  // weights, biases and two moments of each, of two layers, at the least
  BOOST_TEST(test::same_bits<float>(run.weights(), of_second));
  run.trainer.save(third);
  run.trainer.evaluate(*run.planned.testing);
}

BOOST_AUTO_TEST_CASE(one_of_another_precision_goes_on_and_says_so) {
  const training_file data;
  training_run(data, small_trainer()).trainer.save(data.path("c.h5"));
  auto options = small_trainer();
  options.stage.precision = train::precision::bf16;
  training_run run(data, options);
  BOOST_TEST(run.trainer.resume(data.path("c.h5")) == "its matrix products were float32, and this run's are bf16");
  run.trainer.save(data.path("d.h5"));
  BOOST_TEST(run.trainer.resume(data.path("d.h5")) == "");
}

BOOST_AUTO_TEST_CASE(sums_that_are_no_numbers_keep_no_run_from_going_on) {
  // Distances of 1e25 have a finite Huber loss, but no finite square in float32.
  const training_file data;
  auto source = pipeline::source{}
                    .field("x", {{data.file, "/x"}}, {.as = type::float32})
                    .field("label", {{data.file, "/label"}}, {.as = type::float32});
  auto rows = (pipeline::read(source, pipeline::sequential{}) | pipeline::batched({.rows = 64}))
                  .build(gpu::device::host(), {.device_bytes = 16_MiB, .pinned_bytes = 16_MiB});
  auto options = small_trainer();
  options.stage.model = {.inputs = training_file::columns, .hidden = {}, .outputs = 1};
  options.stage.loss = train::huber{};
  options.stage.targets = train::target::values;
  options.stage.optimizer = train::sgd{.learning_rate = 0};
  options.check_every = 2;
  training_run run(data, options), resumed(data, options);
  const std::size_t inputs = training_file::columns;
  run.trainer.stage().set_normalisation({std::vector<double>(inputs, 0), std::vector<double>(inputs, 1e-25)});
  std::stop_source stop;
  run.trainer.train_epoch(rows, stop.get_token(), [&](const auto&) { stop.request_stop(); });
  BOOST_TEST_REQUIRE(std::isfinite(run.trainer.position().training.loss_sum));
  BOOST_TEST_REQUIRE(std::isinf(run.trainer.position().training.square_sum));
  run.trainer.save(data.path("c.h5"));
  BOOST_TEST(resumed.trainer.resume(data.path("c.h5")) == "");
  BOOST_TEST(resumed.trainer.position().training.rows == 128u);
  BOOST_TEST(resumed.trainer.position().training.loss_sum == run.trainer.position().training.loss_sum);
  BOOST_TEST(std::isnan(resumed.trainer.position().training.square_sum));
  const auto done = resumed.trainer.train_epoch(rows);
  BOOST_TEST(done.complete);
  BOOST_TEST(done.training.rows == 1000u);
}

BOOST_AUTO_TEST_CASE(other_data_or_another_order_is_refused_with_both_sides_before_a_step) {
  const training_file data;
  {
    training_run run(data, small_trainer());
    run.trainer.train_epoch(run.planned.training);
    run.trainer.save(data.path("c.h5"));
  }
  const gpu::device host = gpu::device::host();
  constexpr std::uint64_t other_seed = 9;  // training_file's own is 5
  auto opened = data.open(small_trainer().stage.rows, pipeline::last_batch::pad, other_seed);
  const auto plan = opened.plan(host, {});
  auto other = std::move(opened).build(plan, std::make_shared<gpu::memory>(host, plan.ledger));
  training_run run(data, small_trainer());
  run.trainer.resume(data.path("c.h5"));
  const auto before = run.weights();
  BOOST_CHECK_EXCEPTION(run.trainer.train_epoch(other), train::error, [&](const train::error& e) {
    const std::string text = e.what();
    return text.find("seed 9") != std::string::npos && text.find("seed 5") != std::string::npos &&
           text.find("1000 rows of data.h5:/x with data.h5:/label") != std::string::npos;
  });
  BOOST_TEST(test::same_bits<float>(run.weights(), before));
  BOOST_TEST(run.trainer.train_epoch(run.planned.training).complete);
}

BOOST_AUTO_TEST_CASE(names_that_are_no_utf8_are_kept_and_compared) {
  training_file data;
  const auto rename = [&](const char* name) {
    data.file = data.path(name);
    data.write();
  };
  rename("caf\xe9.h5");
  auto options = small_trainer();
  options.class_names = {"caf\xe9", "caf\xc3\xa9", "tea", "milk"};
  {
    training_run run(data, options);
    run.trainer.train_epoch(run.planned.training);
    run.trainer.save(data.path("c.h5"));
  }
  BOOST_TEST(train::labels_of(data.path("c.h5")).names.at(0) == "caf\\xe9");
  BOOST_TEST(train::labels_of(data.path("c.h5")).names.at(1) == options.class_names[1]);
  training_run resumed(data, options);
  BOOST_TEST(resumed.trainer.resume(data.path("c.h5")) == "");
  BOOST_TEST(resumed.trainer.train_epoch(resumed.planned.training).epoch == 1u);
  const auto names_both = [](const char* here) {
    return [here](const train::error& e) {
      const std::string text = e.what();
      return text.find("caf\\") != std::string::npos && text.find(here) != std::string::npos;
    };
  };
  auto other = options;
  other.class_names[0] = "caf\xe8";
  training_run refused(data, other);
  BOOST_CHECK_EXCEPTION(refused.trainer.resume(data.path("c.h5")), train::error, names_both("caf\\\\xe8"));
  rename("caf\xe8.h5");
  training_run moved(data, options);
  moved.trainer.resume(data.path("c.h5"));
  BOOST_CHECK_EXCEPTION(moved.trainer.train_epoch(moved.planned.training), train::error, names_both("caf\\xe8.h5"));
}

BOOST_AUTO_TEST_SUITE_END()
