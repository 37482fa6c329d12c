#include "failing_call.hpp"
#include "fixture.hpp"
#include "gpu.hpp"
#include "training_file.hpp"

#include <penstock/bytes.hpp>
#include <penstock/fault.hpp>
#include <penstock/gpu/error.hpp>
#include <penstock/io/attribute.hpp>
#include <penstock/io/error.hpp>
#include <penstock/train/error.hpp>
#include <penstock/train/predictor.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>

using namespace penstock;
using namespace penstock::literals;
using penstock::test::small_trainer;
using penstock::test::training_file;
using penstock::test::training_run;

namespace {

/// A file, and a checkpoint of two epochs on it.
struct trained_file : training_file {
  std::filesystem::path checkpoint = folder / "c.h5";
  double accuracy = 0;

  explicit trained_file(const train::trainer_options& options = small_trainer()) {
    training_run run(*this, options);
    run.trainer.normalise_from(run.planned.training);
    for (int epoch = 0; epoch < 2; ++epoch) run.trainer.train_epoch(run.planned.training);
    accuracy = run.trainer.evaluate(*run.planned.testing).accuracy();
    run.trainer.save(checkpoint);
  }
};

/// While it is broken, every CUDA call fails, or what the host does in its place.
struct failing_device final : fault_injector {
  std::atomic<bool> broken{false};
  fault before(fault_site site, std::string_view, std::uint64_t, std::size_t) override {
    return {.error = broken && site == fault_site::cuda_call ? 719 : 0};  // cudaErrorLaunchFailure
  }
};

/// Counts CUDA calls, or what the host does in their place.
struct counting_device final : fault_injector {
  std::atomic<std::uint64_t> calls{0};
  fault before(fault_site site, std::string_view, std::uint64_t, std::size_t) override {
    calls += site == fault_site::cuda_call ? 1 : 0;
    return {};
  }
};

/// The predictions of all rows of the file, in its order.
std::vector<float> predictions(const training_file& data, const std::filesystem::path& checkpoint,
                               train::predictor_options options, gpu::device device = gpu::device::host(),
                               pipeline::shard_options share = {}) {
  const auto last = share.shards > 1 ? pipeline::last_batch::pad : pipeline::batch_options{}.last;
  auto opened = (pipeline::read(pipeline::source{}.field("x", {{data.file, "/x"}}, {.as = type::float32})) |
                 pipeline::batch_options{.rows = options.rows, .last = last} | pipeline::sharded(share))
                    .open();
  auto items = train::plan(device, options);
  const auto plan = opened.plan(device, {}, items);
  items.add(plan.ledger);
  const auto memory = std::make_shared<gpu::memory>(device, items);
  const gpu::stream stream(device);
  train::predictor predictor(stream, options, memory);
  predictor.load(checkpoint);
  auto rows = std::move(opened).build(plan, memory);
  std::vector<float> all;
  predictor.predict(rows, "x", [&](std::uint64_t first_row, std::size_t count, std::span<const std::byte> values) {
    BOOST_TEST_REQUIRE(first_row * options.model.outputs == all.size());
    BOOST_TEST_REQUIRE(values.size() == count * options.model.outputs * sizeof(float));
    const auto* first = reinterpret_cast<const float*>(values.data());
    all.insert(all.end(), first, first + count * options.model.outputs);
  });
  return all;
}

train::predictor_options options_for(const std::filesystem::path& checkpoint, std::size_t rows = 64) {
  train::predictor_options options = train::options_of(checkpoint);
  options.rows = rows;
  options.threads = 1;
  return options;
}

double accuracy(const training_file& data, const std::vector<float>& probabilities) {
  std::size_t right = 0;
  for (std::size_t row = 0; row < data.labels.size(); ++row) {
    const float* const first = &probabilities[row * training_file::classes];
    right += std::max_element(first, first + training_file::classes) - first == data.labels[row];
  }
  return static_cast<double>(right) / static_cast<double>(data.labels.size());
}

double worst_distance(const std::vector<float>& a, const std::vector<float>& b) {
  BOOST_TEST_REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]));
  return worst;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(predictor)

BOOST_AUTO_TEST_CASE(a_checkpoint_predicts_as_the_trainer_evaluated) {
  auto trainer = small_trainer();
  trainer.stage.model = {.inputs = training_file::columns,
                         .hidden = {24, 16},
                         .outputs = training_file::classes,
                         .activation = train::activation::gelu,
                         .layer_norm = true,
                         .dropout = 0.1};
  const trained_file data(trainer);
  const auto options = options_for(data.checkpoint);
  BOOST_TEST((options.model == trainer.stage.model));
  const auto found = predictions(data, data.checkpoint, options);
  BOOST_TEST(found.size() == 1000 * training_file::classes);
  BOOST_TEST(accuracy(data, found) == data.accuracy);
  for (std::size_t row = 0; row < 1000; ++row) {
    float sum = 0;
    for (std::size_t c = 0; c < training_file::classes; ++c) sum += found[row * training_file::classes + c];
    BOOST_TEST(std::abs(sum - 1) < 1e-6f);
  }
}

BOOST_AUTO_TEST_CASE(predictions_do_not_depend_on_the_rows_of_a_batch) {
  const trained_file data;
  const auto whole = predictions(data, data.checkpoint, options_for(data.checkpoint, 1000));
  for (const std::size_t rows : {1u, 33u, 256u})
    BOOST_TEST(worst_distance(predictions(data, data.checkpoint, options_for(data.checkpoint, rows)), whole) < 1e-6);
}

BOOST_AUTO_TEST_CASE(outputs_are_those_of_the_last_layer) {
  // The probabilities are the softmax of the outputs, computed here in float64.
  const trained_file data;
  auto options = options_for(data.checkpoint);
  const auto probabilities = predictions(data, data.checkpoint, options);
  options.form = train::prediction::output;
  const auto outputs = predictions(data, data.checkpoint, options);
  constexpr std::size_t n = training_file::classes;
  for (std::size_t row = 0; row < 1000; ++row) {
    double sum = 0;
    for (std::size_t c = 0; c < n; ++c) sum += std::exp(static_cast<double>(outputs[row * n + c]));
    for (std::size_t c = 0; c < n; ++c)
      BOOST_TEST(std::abs(std::exp(static_cast<double>(outputs[row * n + c])) / sum - probabilities[row * n + c]) <
                 1e-6);
  }
}

BOOST_AUTO_TEST_CASE(sixteen_bits_predict_nearly_the_same) {
  const trained_file data;
  auto options = options_for(data.checkpoint);
  const auto exact = predictions(data, data.checkpoint, options);
  for (const auto precision : {train::precision::bf16, train::precision::fp16}) {
    options.precision = precision;
    BOOST_TEST(worst_distance(predictions(data, data.checkpoint, options), exact) < 0.05);
  }
}

BOOST_AUTO_TEST_CASE(memory_does_not_grow_with_the_number_of_layers_but_by_their_weights) {
  const auto of_rows = [](std::vector<std::size_t> hidden) {
    train::predictor_options options;
    options.model = {.inputs = 64, .outputs = 10};
    options.model.hidden = std::move(hidden);
    options.rows = 1024;
    return train::plan(gpu::device::host(), options).total(gpu::memory_kind::device) -
           align_up(train::parameters(options.model) * sizeof(float), gpu::ledger::alignment);
  };
  BOOST_TEST(of_rows({128, 128}) == of_rows({128, 128, 128, 128, 128, 128}));
}

BOOST_AUTO_TEST_CASE(another_model_and_a_value_that_is_not_finite_are_refused) {
  trained_file data;
  auto options = options_for(data.checkpoint);
  options.model.hidden = {25};
  BOOST_CHECK_THROW(predictions(data, data.checkpoint, options), train::error);
  BOOST_CHECK_THROW(train::options_of(data.file), train::error);
  data.x[613 * training_file::columns + 2] = std::numeric_limits<float>::quiet_NaN();
  data.write();
  BOOST_CHECK_EXCEPTION(predictions(data, data.checkpoint, options_for(data.checkpoint)), train::error,
                        [](const train::error& e) { return e.where().rows == std::vector<std::uint64_t>{613}; });
}

BOOST_AUTO_TEST_CASE(a_value_that_is_not_finite_is_no_matter_of_the_next_pipeline) {
  const trained_file data;
  const auto options = options_for(data.checkpoint);
  const gpu::device host = gpu::device::host();
  train::predictor predictor({}, options, std::make_shared<gpu::memory>(host, train::plan(host, options)));
  predictor.load(data.checkpoint);
  std::vector<float> x(3 * training_file::columns);
  x[2 * training_file::columns] = std::numeric_limits<float>::quiet_NaN();
  predictor.predict(x.data(), 3, 40);
  BOOST_TEST(predictor.bad_input() == 42u);
  auto rows = (pipeline::read(pipeline::source{}.field("x", {{data.file, "/x"}}, {.as = type::float32})) |
               pipeline::batched({.rows = options.rows}))
                  .build(host, {.device_bytes = 16_MiB, .pinned_bytes = 16_MiB});
  std::size_t predicted = 0;
  predictor.predict(rows, "x",
                    [&](std::uint64_t, std::size_t count, std::span<const std::byte>) { predicted += count; });
  BOOST_TEST(predicted == 1000u);
  BOOST_TEST(predictor.bad_input() == train::progress::no_row);
}

BOOST_AUTO_TEST_CASE(every_row_that_is_not_finite_is_named_on_request_and_the_others_are_as_they_were) {
  trained_file data;
  const auto options = options_for(data.checkpoint);
  const auto expected = predictions(data, data.checkpoint, options);
  const std::vector<std::uint64_t> bad{0, 63, 64, 65, 200, 201, 999};  // at both ends of batches, and beside each other
  for (const std::uint64_t row : bad)
    data.x[row * training_file::columns + row % 5] =
        row % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
  data.write();
  const gpu::device host = gpu::device::host();
  train::predictor predictor({}, options, std::make_shared<gpu::memory>(host, train::plan(host, options)));
  predictor.load(data.checkpoint);
  auto rows = (pipeline::read(pipeline::source{}.field("x", {{data.file, "/x"}}, {.as = type::float32})) |
               pipeline::batched({.rows = options.rows}))
                  .build(host, {.device_bytes = 16_MiB, .pinned_bytes = 16_MiB});
  for (int pass = 0; pass < 2; ++pass) {
    std::vector<std::uint64_t> named;
    std::vector<float> all;
    predictor.predict(
        rows, "x",
        [&](std::uint64_t, std::size_t count, std::span<const std::byte> values) {
          const auto* first = reinterpret_cast<const float*>(values.data());
          all.insert(all.end(), first, first + count * training_file::classes);
        },
        {}, {}, [&](std::uint64_t row) { named.push_back(row); });
    BOOST_TEST(named == bad, boost::test_tools::per_element());
    BOOST_TEST_REQUIRE(all.size() == expected.size());
    for (const std::uint64_t row : bad)
      std::copy_n(&expected[row * training_file::classes], training_file::classes, &all[row * training_file::classes]);
    BOOST_TEST(test::same_bits<float>(all, expected));
  }
}

/// Which rows of the file are named as not finite, and how much is asked of the device for that.
struct named_rows {
  std::vector<std::uint64_t> rows;
  std::uint64_t calls = 0;
};

named_rows rows_that_are_not_finite(const trained_file& data, const train::predictor_options& options,
                                    gpu::device device) {
  const auto counted = std::make_shared<counting_device>();
  const gpu::stream stream(device, false, counted);
  train::predictor predictor(stream, options, std::make_shared<gpu::memory>(device, train::plan(device, options)));
  predictor.load(data.checkpoint);
  auto rows = (pipeline::read(pipeline::source{}.field("x", {{data.file, "/x"}}, {.as = type::float32})) |
               pipeline::batched({.rows = options.rows}))
                  .build(device, {.device_bytes = 16_MiB, .pinned_bytes = 16_MiB});
  named_rows named;
  const std::uint64_t before = counted->calls;
  predictor.predict(
      rows, "x", [](std::uint64_t, std::size_t, std::span<const std::byte>) {}, {}, {},
      [&](std::uint64_t row) { named.rows.push_back(row); });
  named.calls = counted->calls - before;
  return named;
}

/// Every so many rows of the file hold a value that is not finite.
std::vector<std::uint64_t> spoil_every(std::uint64_t step, trained_file& data) {
  std::vector<std::uint64_t> bad;
  for (std::uint64_t row = 0; row < 1000; row += step) bad.push_back(row);
  for (const std::uint64_t row : bad)
    data.x[row * training_file::columns + row % training_file::columns] = std::numeric_limits<float>::infinity();
  data.write();
  return bad;
}

BOOST_AUTO_TEST_CASE(many_rows_of_a_batch_that_are_not_finite_ask_no_more_of_the_device_than_one) {
  trained_file data;
  const auto options = options_for(data.checkpoint, 100);
  const std::vector<std::uint64_t> one_of_each_batch = spoil_every(100, data);
  const named_rows few = rows_that_are_not_finite(data, options, gpu::device::host());
  BOOST_TEST(few.rows == one_of_each_batch, boost::test_tools::per_element());
  const std::vector<std::uint64_t> every_second = spoil_every(2, data);
  const named_rows many = rows_that_are_not_finite(data, options, gpu::device::host());
  BOOST_TEST(many.rows == every_second, boost::test_tools::per_element());
  BOOST_TEST(few.calls > 0u);
  BOOST_TEST(many.calls == few.calls);
}

BOOST_AUTO_TEST_CASE(rows_that_are_not_finite_are_named_on_cuda, test::on_gpu()) {
  trained_file data;
  const std::vector<std::uint64_t> bad = spoil_every(7, data);
  auto options = options_for(data.checkpoint, 100);
  for (const auto precision : {train::precision::float32, train::precision::bf16}) {
    options.precision = precision;
    BOOST_TEST(rows_that_are_not_finite(data, options, test::first_gpu()).rows == bad,
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(cuda_predicts_as_the_host_does, test::on_gpu()) {
  const trained_file data;
  auto options = options_for(data.checkpoint);
  for (const auto precision : {train::precision::float32, train::precision::bf16, train::precision::fp16}) {
    options.precision = precision;
    const double tolerance = precision == train::precision::float32 ? 1e-5 : 0.05;
    BOOST_TEST(worst_distance(predictions(data, data.checkpoint, options),
                              predictions(data, data.checkpoint, options, test::first_gpu())) < tolerance);
  }
}

BOOST_AUTO_TEST_CASE(what_takes_predictions_may_throw_what_it_likes_and_a_device_that_fails_names_the_rows) {
  const trained_file data;
  struct full {};
  const auto faults = std::make_shared<failing_device>();
  auto options = options_for(data.checkpoint, 300);
  const auto device = gpu::device::host();
  auto opened = (pipeline::read(pipeline::source{}.field("x", {{data.file, "/x"}}, {.as = type::float32})) |
                 pipeline::batch_options{.rows = options.rows})
                    .open();
  auto items = train::plan(device, options);
  const auto plan = opened.plan(device, {}, items);
  items.add(plan.ledger);
  const auto memory = std::make_shared<gpu::memory>(device, items);
  const gpu::stream stream(device, false, faults);
  train::predictor predictor(stream, options, memory);
  predictor.load(data.checkpoint);
  auto rows = std::move(opened).build(plan, memory);
  std::uint64_t taken = 0;
  const auto take = [&](std::uint64_t first_row, std::size_t, std::span<const std::byte>) {
    if (first_row == 300) throw full();
  };
  BOOST_CHECK_THROW(predictor.predict(rows, "x", take), full);
  const auto broken = [&](std::uint64_t first_row, std::size_t count, std::span<const std::byte>) {
    taken += count;
    faults->broken = first_row == 300;  // the third batch is computed by then, and the fourth is not
  };
  BOOST_CHECK_EXCEPTION(predictor.predict(rows, "x", broken), pipeline::error, [&](const pipeline::error& e) {
    BOOST_TEST(e.where().stage == "prediction");
    BOOST_TEST(std::string(e.what()).starts_with("prediction failed at rows 900-999 of epoch 0, from /x of " +
                                                 data.file.string() + ": "));
    return true;
  });
  BOOST_TEST(taken == 600u);
}

BOOST_AUTO_TEST_CASE(a_predictor_says_which_checkpoint_it_read) {
  const training_file data;
  const auto file = data.path("c.h5");
  training_run run(data, small_trainer());
  run.trainer.normalise_from(run.planned.training);
  run.trainer.save(file);
  const auto options = options_for(file);
  const auto device = gpu::device::host();
  const gpu::stream stream(device);
  train::predictor predictor(stream, options, std::make_shared<gpu::memory>(device, train::plan(device, options)));
  const auto in_file = [&] { return io::read_attribute(file, "/", "penstock_checksum").value(); };
  const std::string first = predictor.load(file), in_first = in_file();
  BOOST_TEST(first == in_first);
  run.trainer.train_epoch(run.planned.training);
  run.trainer.save(file);
  BOOST_TEST(in_file() != in_first);
  BOOST_TEST(predictor.load(file) == in_file());
}

BOOST_AUTO_TEST_CASE(weights_of_two_checkpoints_predict_nothing) {
  const training_file data;
  const auto first = data.path("a.h5"), second = data.path("b.h5");
  training_run run(data, small_trainer());
  run.trainer.normalise_from(run.planned.training);
  run.trainer.save(first);
  run.trainer.train_epoch(run.planned.training);
  run.trainer.save(second);
  const auto options = options_for(first);
  const auto device = gpu::device::host();
  const auto calls = std::make_shared<test::failing_call>();
  const gpu::stream stream(device, false, calls);
  train::predictor predictor(stream, options, std::make_shared<gpu::memory>(device, train::plan(device, options)));
  const auto predicted = [&] {
    const auto* values = static_cast<const float*>(predictor.predict(data.x.data(), 50));
    return std::vector<float>(values, values + 50 * training_file::classes);
  };
  predictor.load(second);
  const auto of_second = predicted();
  predictor.load(first);
  const auto of_first = predicted();
  BOOST_TEST(!test::same_bits<float>(of_first, of_second));
  // What is refused before anything is written changes nothing.
  BOOST_CHECK_THROW(predictor.load(data.path("none.h5")), io::error);
  BOOST_CHECK_THROW(predictor.load(data.file), train::error);
  BOOST_TEST(test::same_bits<float>(predicted(), of_first));
  const auto torn = [](const train::error& e) { return std::string(e.what()).find("to its end") != std::string::npos; };
  int failed = 0;
  for (int call = 0;; ++call) {
    calls->left = call;
    try {
      predictor.load(second);
      break;
    } catch (const gpu::error&) {
    }
    ++failed;
    calls->left = -1;
    BOOST_CHECK_EXCEPTION(predicted(), train::error, torn);
    BOOST_CHECK_THROW(predictor.load(data.path("none.h5")), io::error);
    BOOST_CHECK_EXCEPTION(predicted(), train::error, torn);
    predictor.load(first);
    BOOST_TEST(test::same_bits<float>(predicted(), of_first));
  }
  BOOST_TEST(failed > 4);  // weights and biases of two layers, at the least
  BOOST_TEST(test::same_bits<float>(predicted(), of_second));
}

BOOST_AUTO_TEST_CASE(shards_predict_their_rows_also_where_one_has_a_batch_less) {
  const training_file data(129);  // of two, one has 65 rows, the other 64: a whole batch, and one of padding
  training_run run(data, small_trainer());
  run.trainer.normalise_from(run.planned.training);
  run.trainer.save(data.path("c.h5"));
  const auto options = options_for(data.path("c.h5"));
  using scores = std::array<float, training_file::classes>;
  const auto rows_of = [](const std::vector<float>& all) {
    std::vector<scores> rows(all.size() / training_file::classes);
    for (std::size_t i = 0; i < all.size(); ++i) rows[i / training_file::classes][i % training_file::classes] = all[i];
    return rows;
  };
  std::vector<scores> dealt;
  for (const std::uint64_t rank : {0u, 1u}) {
    const auto own =
        rows_of(predictions(data, data.path("c.h5"), options, gpu::device::host(), {.shards = 2, .rank = rank}));
    BOOST_TEST(own.size() == 65 - rank);
    dealt.insert(dealt.end(), own.begin(), own.end());
  }
  auto all = rows_of(predictions(data, data.path("c.h5"), options));
  std::sort(all.begin(), all.end());
  std::sort(dealt.begin(), dealt.end());
  BOOST_TEST((dealt == all));
}

BOOST_AUTO_TEST_SUITE_END()
