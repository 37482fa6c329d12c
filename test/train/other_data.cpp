#include "fixture.hpp"
#include "training_file.hpp"

#include <penstock/bytes.hpp>
#include <penstock/train/error.hpp>

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <string>
#include <vector>

using namespace penstock;
using namespace penstock::literals;
using penstock::test::small_trainer;
using penstock::test::training_file;
using penstock::test::training_run;

namespace {

/// Four files of 200 rows, and a checkpoint of one epoch.
struct files_of_rows {
  training_file data{200};
  std::vector<std::filesystem::path> files;
  pipeline::order_options order = pipeline::shuffled{.seed = 5, .run_rows = 16, .pool_rows = 64};

  files_of_rows() {
    for (const char* name : {"s0.h5", "s1.h5", "s2.h5", "s3.h5"}) {
      files.push_back(data.path(name));
      std::filesystem::copy_file(data.file, files.back());
    }
  }

  pipeline::source source(const std::vector<std::size_t>& numbers = {0, 1, 2}) const {
    std::vector<io::location> x, label;
    for (const std::size_t n : numbers) x.push_back({files[n], "/x"}), label.push_back({files[n], "/label"});
    return pipeline::source{}
        .field("x", std::move(x), {.as = type::float32})
        .field("label", std::move(label), {.as = type::int32});
  }

  pipeline::pipeline rows(const pipeline::source& from, std::size_t batch_rows = 64,
                          pipeline::transport_options how = {}, gpu::budget budget = {}) const {
    return (pipeline::read(from, order) | pipeline::batched({.rows = batch_rows, .last = pipeline::last_batch::pad}) |
            how)
        .build(gpu::device::host(), budget);
  }

  void train_on(pipeline::pipeline training) const {
    training_run run(data, small_trainer());
    run.trainer.train_epoch(training);
    run.trainer.save(data.path("c.h5"));
  }

  void goes_on(pipeline::pipeline training, const train::trainer_options& options = small_trainer()) const {
    training_run run(data, options);
    run.trainer.resume(data.path("c.h5"));
    BOOST_TEST(run.trainer.train_epoch(training).epoch == 1u);
  }

  /// With a sentence that holds what both sides are, which differs.
  void is_refused(pipeline::pipeline training) const {
    training_run run(data, small_trainer());
    run.trainer.resume(data.path("c.h5"));
    const std::string then = run.trainer.position().source;
    const auto before = run.weights();
    const auto names_both = [&](const train::error& e) {
      const std::string text = e.what(), start = "the training set is ";
      const auto end = text.find(", and this run began with " + then);
      return text.starts_with(start) && end != std::string::npos && text.substr(0, end) != start + then;
    };
    BOOST_CHECK_EXCEPTION(run.trainer.check_source(training), train::error, names_both);
    BOOST_CHECK_EXCEPTION(run.trainer.train_epoch(training), train::error, names_both);
    BOOST_TEST(test::same_bits<float>(run.weights(), before));
  }
};

std::vector<std::uint64_t> every_second_from(std::uint64_t first) {
  std::vector<std::uint64_t> rows;
  for (std::uint64_t row = first; row < 600; row += 2) rows.push_back(row);
  return rows;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(other_data, files_of_rows)

BOOST_AUTO_TEST_CASE(another_file_between_the_first_and_the_last_is_refused) {
  train_on(rows(source({0, 1, 2})));
  is_refused(rows(source({0, 3, 2})));
  goes_on(rows(source({0, 1, 2})));
}

BOOST_AUTO_TEST_CASE(a_look_at_the_data_before_the_first_epoch_does_not_stand_for_it) {
  auto these = rows(source({0, 1, 2})), others = rows(source({0, 3, 2}));
  training_run fresh(data, small_trainer());
  BOOST_TEST(fresh.trainer.position().source.empty());
  fresh.trainer.check_source(these);
  fresh.trainer.save(data.path("c.h5"));
  for (int times = 0; times < 2; ++times) {
    training_run run(data, small_trainer());
    run.trainer.resume(data.path("c.h5"));
    if (times == 1) run.trainer.check_source(these);
    BOOST_CHECK_THROW(run.trainer.check_source(others), train::error);
    BOOST_CHECK_THROW(run.trainer.train_epoch(others), train::error);
    BOOST_TEST(run.trainer.train_epoch(these).complete);
  }
}

BOOST_AUTO_TEST_CASE(as_many_other_rows_of_the_same_files_are_refused) {
  train_on(rows(source().select(pipeline::selection(every_second_from(0)))));
  is_refused(rows(source().select(pipeline::selection(every_second_from(1)))));
  goes_on(rows(source().select(pipeline::selection(every_second_from(0)))));
}

BOOST_AUTO_TEST_CASE(another_part_of_the_same_datasets_is_refused) {
  const auto halves = [&](std::uint64_t first) {
    const auto part = [&](const char* dataset, std::uint64_t columns) {
      io::location where{files[0], dataset};
      where.region = {{.axis = 1, .first = first, .count = columns}};
      return where;
    };
    return pipeline::source{}
        .field("x", {part("/x", training_file::columns / 2)}, {.as = type::float32})
        .field("label", {{files[0], "/label"}}, {.as = type::int32});
  };
  auto options = small_trainer();
  options.stage.model.inputs = training_file::columns / 2;
  {
    auto training = rows(halves(0));
    training_run run(data, options);
    run.trainer.train_epoch(training);
    run.trainer.save(data.path("c.h5"));
  }
  training_run run(data, options);
  run.trainer.resume(data.path("c.h5"));
  auto other = rows(halves(training_file::columns / 2)), same = rows(halves(0));
  BOOST_CHECK_THROW(run.trainer.train_epoch(other), train::error);
  BOOST_TEST(run.trainer.train_epoch(same).epoch == 1u);
}

BOOST_AUTO_TEST_CASE(draws_by_other_weights_are_refused_however_many_there_are) {
  std::vector<double> weights(600, 1.0);
  order = pipeline::weighted{.seed = 5, .weights = weights, .rows = 700};  // more than the source has
  train_on(rows(source()));
  weights[300] = 2;
  order = pipeline::weighted{.seed = 5, .weights = weights, .rows = 700};
  is_refused(rows(source()));
}

BOOST_AUTO_TEST_CASE(another_input_of_a_transform_is_refused) {
  const auto doubled = [&](std::size_t file) {
    auto from =
        pipeline::source{}
            .field("raw", {{files[0], "/x"}, {files[file], "/x"}, {files[2], "/x"}}, {.as = type::float32})
            .field("label", {{files[0], "/label"}, {files[1], "/label"}, {files[2], "/label"}}, {.as = type::int32});
    const pipeline::transform_options made{.name = "double",
                                           .outputs = {{.name = "x", .row_shape = {training_file::columns}}}};
    return (pipeline::read(from, order) | pipeline::batched({.rows = 64, .last = pipeline::last_batch::pad}) |
            pipeline::transform_host(made,
                                     [](const pipeline::block& block) {
                                       for (std::size_t n = 0; n < block.rows() * training_file::columns; ++n)
                                         block.output<float>("x")[n] = 2 * block.input<float>("raw")[n];
                                     }))
        .build(gpu::device::host(), {});
  };
  train_on(doubled(1));
  is_refused(doubled(3));
  goes_on(doubled(1));
}

BOOST_AUTO_TEST_CASE(other_threads_budgets_blocks_batches_and_folders_go_on) {
  train_on(rows(source()));
  goes_on(rows(source(), 64, {.block_bytes = 4096, .slots = 3, .threads = 2}));
  goes_on(rows(source(), 64, {}, {.device_bytes = 1_MiB, .pinned_bytes = 1_MiB}));
  goes_on(rows(source(), 16), small_trainer(16, 4));
  goes_on(rows(source(), 32, {.threads = 1}), small_trainer(32, 2));
  std::filesystem::create_directory(data.path("moved"));
  for (auto& file : files) {
    const auto to = data.path("moved") / file.filename();
    std::filesystem::rename(file, to);
    file = to;
  }
  goes_on(rows(source()));
}

BOOST_AUTO_TEST_SUITE_END()
