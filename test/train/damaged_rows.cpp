// Rows that the pipeline leaves out because they are damaged teach nothing.

#include "damaged_chunks.hpp"
#include "fixture.hpp"
#include "training_file.hpp"

#include <penstock/pipeline/error.hpp>
#include <penstock/train/error.hpp>

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>

using namespace penstock;
using namespace penstock::literals;
using penstock::test::small_trainer;
using penstock::test::training_file;
using penstock::test::training_run;

namespace {

constexpr std::size_t first_damaged = 192, end_damaged = 256;  // chunk 3 of /x

bool is_damaged(std::size_t row) { return row >= first_damaged && row < end_damaged; }

/// A trainer beside a pipeline over `from`.
struct run {
  pipeline::pipeline data;
  train::trainer_options options;
  train::trainer trainer;

  run(pipeline::source from, train::trainer_options o)
      : data((pipeline::read(std::move(from), pipeline::shuffled{.seed = 5, .run_rows = 16, .pool_rows = 128}) |
              pipeline::batched({.rows = o.stage.rows, .last = pipeline::last_batch::pad}))
                 .build(gpu::device::host(), {.device_bytes = 16_MiB, .pinned_bytes = 16_MiB})),
        options(std::move(o)),
        trainer(gpu::stream_ref{}, options,
                std::make_shared<gpu::memory>(gpu::device::host(), train::plan(gpu::device::host(), options.stage))) {}

  std::vector<float> weights_after_two_epochs() {
    for (int epoch = 0; epoch < 2; ++epoch) trainer.train_epoch(data);
    std::vector<float> all;
    for (const train::state_item& item : trainer.stage().state()) {
      std::size_t count = 1;
      for (const auto extent : item.shape) count *= extent;
      all.resize(all.size() + count);
      trainer.stage().read_state(item, 0, reinterpret_cast<std::byte*>(&all[all.size() - count]),
                                 count * sizeof(float));
    }
    return all;
  }
};

pipeline::source fields_of(const training_file& data) {
  return pipeline::source{}
      .field("x", {{data.file, "/x"}}, {.as = type::float32})
      .field("label", {{data.file, "/label"}}, {.as = type::int32});
}

void add_weights(const training_file& data) {
  const std::string zeros = std::to_string(first_damaged) + ":" + std::to_string(end_damaged);
  test::run_python("import h5py, numpy\nwith h5py.File('" + data.file.string() +
                   "', 'a') as f:\n  w = numpy.ones(len(f['x']), 'f4')\n  w[" + zeros + "] = 0\n  f['weight'] = w\n");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(damaged_rows)

BOOST_AUTO_TEST_CASE(a_run_past_damage_gives_the_bits_of_one_with_weights_of_zero) {
  const training_file data;
  add_weights(data);
  auto weighted = small_trainer();
  weighted.weight = "weight";
  run healthy(fields_of(data).field("weight", {{data.file, "/weight"}}), weighted);
  const auto statistics = [&] {
    train::input_statistics s{std::vector<double>(training_file::columns), std::vector<double>(training_file::columns)};
    for (std::size_t column = 0; column < training_file::columns; ++column) {
      double sum = 0, squares = 0, count = 0;
      for (std::size_t row = 0; row < data.labels.size(); ++row)
        if (!is_damaged(row)) sum += data.x[row * training_file::columns + column], ++count;
      s.mean[column] = sum / count;
      for (std::size_t row = 0; row < data.labels.size(); ++row)
        if (!is_damaged(row)) squares += std::pow(data.x[row * training_file::columns + column] - s.mean[column], 2);
      s.deviation[column] = std::sqrt(squares / count);
    }
    return s;
  }();
  healthy.trainer.stage().set_normalisation(statistics);
  const auto expected = healthy.weights_after_two_epochs();

  test::damage_chunks(data.file, "/x", {3});
  run damaged(fields_of(data).damaged({.policy = pipeline::damage_policy::skip}), small_trainer());
  damaged.trainer.normalise_from(damaged.data);
  const auto found = damaged.trainer.stage().normalisation();
  for (std::size_t column = 0; column < training_file::columns; ++column) {
    BOOST_TEST(found.mean[column] == statistics.mean[column], boost::test_tools::tolerance(1e-9));
    BOOST_TEST(found.deviation[column] == statistics.deviation[column], boost::test_tools::tolerance(1e-9));
  }
  damaged.trainer.stage().set_normalisation(statistics);
  BOOST_TEST(test::same_bits<float>(damaged.weights_after_two_epochs(), expected));
  BOOST_TEST(damaged.data.report().damaged_row_count == end_damaged - first_damaged);
}

BOOST_AUTO_TEST_CASE(weights_and_a_mask_must_be_made_one) {
  const training_file data;
  add_weights(data);
  auto options = small_trainer();
  options.weight = "weight";
  run both(fields_of(data).field("weight", {{data.file, "/weight"}}).damaged({.policy = pipeline::damage_policy::skip}),
           options);
  BOOST_CHECK_EXCEPTION(both.trainer.train_epoch(both.data), std::invalid_argument,
                        [](const auto& e) { return std::string(e.what()).find("'intact'") != std::string::npos; });
}

BOOST_AUTO_TEST_CASE(an_evaluation_that_ends_at_damage_leaves_no_fault_of_its_own) {
  const training_file good;
  training_run straight(good, small_trainer()), other(good, small_trainer());
  straight.trainer.train_epoch(straight.planned.training);
  training_file data = good;
  data.x[0] = std::numeric_limits<float>::quiet_NaN();  // in the first batch; the damage is in the last one
  data.write();
  test::damage_chunks(data.file, "/x", {15});
  pipeline::pipeline testing =
      (pipeline::read(fields_of(data), pipeline::sequential{}) | pipeline::transport({.block_bytes = 4096}) |
       pipeline::batched({.rows = 64, .last = pipeline::last_batch::pad}))
          .build(gpu::device::host(), {.device_bytes = 16_MiB, .pinned_bytes = 16_MiB});
  BOOST_CHECK_THROW(other.trainer.evaluate(testing), pipeline::error);
  good.write();
  BOOST_TEST(other.trainer.train_epoch(straight.planned.training).complete);
  BOOST_TEST(test::same_bits<float>(other.weights(), straight.weights()));
}

BOOST_AUTO_TEST_CASE(a_set_of_which_every_row_is_damaged_is_said_to_be_so_each_time) {
  const training_file data;
  std::vector<int> all;
  for (int chunk = 0; chunk < 16; ++chunk) all.push_back(chunk);
  test::damage_chunks(data.file, "/x", all);
  run none(fields_of(data).damaged({.policy = pipeline::damage_policy::skip}), small_trainer());
  for (int time = 0; time < 2; ++time) {
    BOOST_CHECK_EXCEPTION(none.trainer.train_epoch(none.data), train::error, [](const train::error& e) {
      return std::string(e.what()).find("no row of the training set counts: all are damaged") != std::string::npos;
    });
    BOOST_TEST(none.trainer.position().epoch == 0u);
    BOOST_TEST(none.trainer.position().next_batch == 0u);
  }
}

BOOST_AUTO_TEST_CASE(a_set_whose_rows_all_weigh_nothing_is_not_said_to_be_damaged) {
  const training_file data;
  test::run_python("import h5py\nwith h5py.File('" + data.file.string() +
                   "', 'a') as f: f.create_dataset('weight', (len(f['x']),), 'f4')\n");
  auto options = small_trainer();
  options.weight = "weight";
  run none(fields_of(data).field("weight", {{data.file, "/weight"}}), options);
  BOOST_CHECK_EXCEPTION(none.trainer.train_epoch(none.data), train::error, [](const train::error& e) {
    return std::string(e.what()).ends_with("no row of the training set counts: the weights of all rows are 0");
  });
}

BOOST_AUTO_TEST_CASE(a_run_goes_on_past_damage_with_other_fields_beside) {
  const training_file data;
  add_weights(data);
  const auto checkpoint = data.path("kept.h5");
  run healthy(fields_of(data), small_trainer());
  healthy.trainer.train_epoch(healthy.data);
  healthy.trainer.save(checkpoint);

  run beside(fields_of(data)
                 .field("weight", {{data.file, "/weight"}})  // not the weights of this run
                 .damaged({.policy = pipeline::damage_policy::skip}),
             small_trainer());
  beside.trainer.resume(checkpoint);
  BOOST_TEST(beside.trainer.train_epoch(beside.data).complete);

  auto options = small_trainer();
  options.stored_weight = "weight";
  run weighted(
      fields_of(data).field("weight", {{data.file, "/weight"}}).damaged({.policy = pipeline::damage_policy::skip}),
      options);
  weighted.trainer.resume(checkpoint);
  BOOST_CHECK_EXCEPTION(weighted.trainer.train_epoch(weighted.data), train::error, [](const train::error& e) {
    return std::string(e.what()).find("/weight") != std::string::npos;
  });
}

BOOST_AUTO_TEST_SUITE_END()
