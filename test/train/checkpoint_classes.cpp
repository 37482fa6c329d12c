// What of a checkpoint grows with the number of classes, and what of it may not grow beyond what is read back.

#include "fixture.hpp"
#include "training_file.hpp"

#include <penstock/checksum.hpp>
#include <penstock/io/attribute.hpp>
#include <penstock/io/row_reader.hpp>
#include <penstock/io/writer.hpp>
#include <penstock/train/error.hpp>
#include <penstock/train/own_model.hpp>
#include <penstock/train/predictor.hpp>

#include <fmt/format.h>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace penstock;
using penstock::test::small_trainer;
using penstock::test::training_file;
using penstock::test::training_run;

namespace {

constexpr std::size_t json_bound = std::size_t{16} << 20;  // of what is read back as JSON

/// The probabilities that a checkpoint's model gives the first rows of x.
std::vector<float> predict_with(const std::filesystem::path& checkpoint, const std::vector<float>& x,
                                std::size_t rows) {
  train::predictor_options options = train::options_of(checkpoint);
  options.rows = rows;
  options.threads = 1;
  const auto device = gpu::device::host();
  const auto memory = std::make_shared<gpu::memory>(device, train::plan(device, options));
  const gpu::stream stream(device);
  train::predictor predictor(stream, options, memory);
  predictor.load(checkpoint);
  const auto* const y = static_cast<const float*>(predictor.predict(x.data(), rows));
  stream.synchronize();
  return {y, y + rows * options.model.outputs};
}

void check_probabilities(const std::vector<float>& y, std::size_t rows) {
  const std::size_t classes = y.size() / rows;
  for (std::size_t row = 0; row < rows; ++row) {
    const auto first = y.begin() + static_cast<std::ptrdiff_t>(row * classes);
    BOOST_TEST(std::accumulate(first, first + static_cast<std::ptrdiff_t>(classes), 0.0) == 1,
               boost::test_tools::tolerance(1e-2));
  }
}

/// Keeps one value; has a name.
struct named_model {
  std::string called;
  std::byte* value = nullptr;

  std::string name() const { return called; }
  gpu::ledger plan(gpu::device) const {
    gpu::ledger items;
    items.add(gpu::memory_kind::device, "own: value", sizeof(float));
    return items;
  }
  void bind(gpu::stream_ref, const gpu::memory& memory) {
    value = memory.at(gpu::memory_kind::device, "own: value").data();
  }
  void step(const pipeline::batch&, const train::step_place&) {}
  void visit_state(const train::state_visitor& visit) { visit({"/model/value", type::float32, {1}, value}); }
};

struct named_trainer {
  named_model model;
  gpu::stream stream{gpu::device::host()};
  train::trainer trainer;

  explicit named_trainer(std::string name)
      : model{.called = std::move(name)},
        trainer(stream, small_trainer(),
                std::make_shared<gpu::memory>(gpu::device::host(),
                                              train::plan(gpu::device::host(), train::functions_of(model))),
                train::functions_of(model)) {}
};

}  // namespace

BOOST_AUTO_TEST_SUITE(checkpoint_classes)

BOOST_AUTO_TEST_CASE(names_of_more_bytes_than_json_may_have_are_read_back) {
  const training_file data;
  auto options = small_trainer();
  for (const char letter : {'a', 'b', 'c'}) options.class_names.emplace_back(json_bound / 3, letter);
  options.class_names.emplace_back("");  // one more, to find where each ends
  const auto file = data.path("c.h5");
  training_run run(data, options);
  run.trainer.normalise_from(run.planned.training);
  run.trainer.train_epoch(run.planned.training);
  run.trainer.save(file);
  BOOST_TEST((train::labels_of(file).names == options.class_names));
  training_run resumed(data, options);
  BOOST_TEST(resumed.trainer.resume(file) == "");
  BOOST_TEST((resumed.weights() == run.weights()));
  BOOST_TEST(resumed.trainer.train_epoch(resumed.planned.training).epoch == 1u);
  check_probabilities(predict_with(file, data.x, 8), 8);
  options.class_names[2].back() = 'd';
  training_run other(data, options);
  BOOST_CHECK_EXCEPTION(other.trainer.resume(file), train::error, [](const train::error& e) {
    const std::string text = e.what();
    return text.find("its classes are") != std::string::npos && text.size() < 2000;
  });
}

BOOST_AUTO_TEST_CASE(weights_of_as_many_classes_as_labels_tell_apart_are_read_back) {
  constexpr std::size_t classes = std::size_t{1} << 20;
  const training_file data(64);
  auto options = small_trainer(4);
  options.stage.model.hidden = {1};
  options.stage.model.outputs = classes;
  for (std::size_t c = 0; c < classes; ++c) options.stage.class_weights.push_back(1 / (3.0 + static_cast<double>(c)));
  const auto file = data.path("c.h5");
  training_run run(data, options);
  run.trainer.normalise_from(run.planned.training);
  run.trainer.train_epoch(run.planned.training);
  run.trainer.save(file);
  const io::row_reader reader({{file, "/classes/weights"}});
  std::vector<double> there(reader.rows());
  reader.read(0, there.size(), std::as_writable_bytes(std::span(there)));
  BOOST_TEST((there == options.stage.class_weights));
  BOOST_TEST(io::read_attribute(file, "/", "penstock")->size() < json_bound / 1000);
  BOOST_TEST(run.trainer.resume(file) == "");
  BOOST_CHECK_NO_THROW(train::check_checkpoint(file, options));
  check_probabilities(predict_with(file, data.x, 2), 2);
  options.stage.class_weights.back() *= 2;
  BOOST_CHECK_EXCEPTION(train::check_checkpoint(file, options), train::error, [](const train::error& e) {
    const std::string text = e.what();
    return text.find("its class weights are") != std::string::npos && text.size() < 2000;
  });
}

// format4.checkpoint is penstock-train's of that time: --hidden 24 --batch-rows 64 --seed 3 --class-weights
// 1,0.5,2,0.1, two epochs of 12 inputs and texts of four classes.
BOOST_AUTO_TEST_CASE(a_checkpoint_of_the_format_before_is_gone_on_with) {
  const std::filesystem::path file = std::filesystem::path(PENSTOCK_TRAIN_REFERENCE) / "format4.checkpoint";
  auto options = small_trainer();
  options.class_names = {"apple", "birch", "fig", "zebra"};
  options.stage.class_weights = {1, 0.5, 2, 0.1};
  BOOST_TEST(train::labels_of(file).names == options.class_names, boost::test_tools::per_element());
  BOOST_CHECK_NO_THROW(train::check_checkpoint(file, options));
  const training_file data;
  training_run run(data, options);
  run.trainer.resume(file);
  BOOST_TEST(run.trainer.position().epoch == 2u);
  std::vector<float> weight(24 * 12);
  io::row_reader({{file, "/model/layer0/weight"}}).read(0, 24, std::as_writable_bytes(std::span(weight)));
  std::vector<float> there = run.weights();
  there.resize(weight.size());  // of the first layer
  BOOST_TEST((there == weight));
  check_probabilities(predict_with(file, data.x, 8), 8);
  // What it becomes is of this format.
  run.trainer.save(data.path("c.h5"));
  BOOST_CHECK_NO_THROW(train::check_checkpoint(data.path("c.h5"), options));
  for (const char* changed : {"weights", "names"}) {
    auto other = options;
    if (changed[0] == 'w')
      other.stage.class_weights = {1, 0.5, 2, 0.2};
    else
      other.class_names[3] = "yew";
    BOOST_CHECK_THROW(train::check_checkpoint(file, other), train::error);
    BOOST_CHECK_THROW(train::check_checkpoint(data.path("c.h5"), other), train::error);
  }
}

/// Of text that belongs to its checksum, as a forger would write it.
BOOST_AUTO_TEST_CASE(forged_counts_of_classes_take_no_memory) {
  const training_file data;
  const auto file = data.path("c.h5"), forged = data.path("forged.h5");
  training_run run(data, small_trainer());
  run.trainer.save(file);
  for (const char* name : {"names", "bytes_of_names"}) {
    std::string text = *io::read_attribute(file, "/", "penstock");
    for (const auto& [was, is] :
         {std::pair{fmt::format("\"{}\": 0", name), fmt::format("\"{}\": {}", name, 1ull << 60)},
          std::pair{std::string("\"sealed\": true"), std::string("\"sealed\": false")}}) {
      const auto at = text.find(was);
      BOOST_TEST_REQUIRE(at != std::string::npos, was);
      text.replace(at, was.size(), is);
    }
    checksum sum;
    sum.add(std::as_bytes(std::span(text)));
    io::writer to(forged);
    to.attribute("/", "penstock", text);
    to.attribute("/", "penstock_checksum", fmt::format("{:016x}", sum.value()));
    to.commit();
    BOOST_CHECK_EXCEPTION(train::labels_of(forged), train::error, [](const train::error& e) {
      return std::string(e.what()).find("the whole file has room for") != std::string::npos;
    });
  }
}

BOOST_AUTO_TEST_CASE(what_a_checkpoint_could_not_hold_is_refused_when_the_trainer_is_made) {
  const test::scratch_folder scratch;
  const auto file = scratch.path("c.h5");
  named_trainer large(std::string(json_bound - (std::size_t{2} << 20), 'm'));
  large.trainer.save(file);
  BOOST_TEST(large.trainer.resume(file) == "");
  BOOST_CHECK_EXCEPTION(named_trainer(std::string(json_bound, 'm')), std::invalid_argument,
                        [](const std::invalid_argument& e) {
                          const std::string text = e.what();
                          return text.find("a checkpoint could not hold this run") != std::string::npos &&
                                 text.find("bytes of JSON") != std::string::npos && text.size() < 1000;
                        });
  // A name may be any bytes.
  named_trainer odd("caf\xe9");
  odd.trainer.save(file);
  BOOST_TEST(odd.trainer.resume(file) == "");
}

BOOST_AUTO_TEST_SUITE_END()
