#include "fixture.hpp"
#include "training_file.hpp"

#include <penstock/train/error.hpp>
#include <penstock/train/predictor.hpp>

#include <boost/test/unit_test.hpp>

#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

using namespace penstock;
using penstock::test::rows_of;
using train::join;

namespace {

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

BOOST_AUTO_TEST_SUITE(runs_of_pairs)

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

BOOST_AUTO_TEST_CASE(rows_of_which_either_input_is_not_finite_are_named) {
  pair_file data;
  pair_run run(data);
  run.trainer.save(data.path("state.h5"));
  const auto spoil = [&](rows_of<float>& rows, std::size_t row) {
    rows.x[row * pair_file::columns + row % pair_file::columns] = std::numeric_limits<float>::infinity();
  };
  spoil(data.a, 3), spoil(data.b, 5), spoil(data.a, 70), spoil(data.b, 70), spoil(data.b, 599);
  data.write();
  train::predictor_options options = train::options_of(data.path("state.h5"));
  options.rows = 64;
  const auto memory = std::make_shared<gpu::memory>(gpu::device::host(), train::plan(gpu::device::host(), options));
  train::predictor predictor(gpu::stream_ref{}, options, memory);
  predictor.load(data.path("state.h5"));
  auto source = pipeline::source{}
                    .field("x", {{data.file, "/a"}}, {.as = type::float32})
                    .field("x2", {{data.file, "/b"}}, {.as = type::float32});
  auto rows = (pipeline::read(source) | pipeline::batch_options{.rows = 64}).build(gpu::device::host(), {});
  std::vector<std::uint64_t> named;
  predictor.predict(
      rows, "x", [](std::uint64_t, std::size_t, std::span<const std::byte>) {}, {}, "x2",
      [&](std::uint64_t row) { named.push_back(row); });
  BOOST_TEST(named == (std::vector<std::uint64_t>{3, 5, 70, 599}), boost::test_tools::per_element());
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

BOOST_AUTO_TEST_CASE(of_two_inputs_at_fault_the_first_is_named_and_the_run_goes_on_from_its_step) {
  const pair_file good;
  train::trainer_options options = pair_file::options();
  options.check_every = 1000;                                // the device is looked at once, after both
  options.stage.model.activation = train::activation::tanh;  // of an infinite value 1: the loss tells nothing
  pair_run straight(good, options), run(good, options);
  straight.trainer.train_epoch(straight.planned.training);

  pair_file data = good;
  const auto& order = run.planned.training.row_order();
  const std::uint64_t of_b = order.row(0, 170), of_a = order.row(0, 420);  // batches 3 and 8
  data.b.x[of_b * pair_file::columns] = std::numeric_limits<float>::infinity();
  data.a.x[of_a * pair_file::columns] = std::numeric_limits<float>::infinity();
  data.write();
  const auto names_it = [&](const train::error& e) {
    return e.where().rows == std::vector<std::uint64_t>{of_b} &&
           std::string(e.what()).find("pairs.h5:/b row " + std::to_string(of_b) + ":") != std::string::npos;
  };
  pair_run spoilt(data, options);
  BOOST_CHECK_EXCEPTION(spoilt.trainer.normalise_from(spoilt.planned.training), train::error, names_it);
  BOOST_CHECK_EXCEPTION(run.trainer.train_epoch(spoilt.planned.training), train::error, names_it);
  BOOST_TEST(run.trainer.position().next_batch == 3u);
  BOOST_TEST(run.trainer.position().training.rows == 150u);
  run.trainer.save(data.path("state.h5"));

  good.write();
  pair_run mended(good, options);
  mended.trainer.resume(data.path("state.h5"));
  BOOST_TEST(mended.trainer.train_epoch(mended.planned.training).complete);
  BOOST_TEST(test::same_bits<float>(mended.weights(), straight.weights()));
}

BOOST_AUTO_TEST_CASE(the_field_of_the_second_input_must_be_named) {
  const pair_file file;
  train::trainer_options options = pair_file::options();
  options.x2.clear();
  BOOST_CHECK_THROW(pair_run(file, options), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
