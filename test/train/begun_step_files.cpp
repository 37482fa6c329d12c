// Checkpoints of a step that has begun, as files: what they hold, and what is refused of a damaged or forged one.
#include "begun_runs.hpp"
#include "fixture.hpp"

#include <penstock/checksum.hpp>
#include <penstock/io/attribute.hpp>
#include <penstock/io/row_reader.hpp>
#include <penstock/io/writer.hpp>
#include <penstock/train/error.hpp>
#include <penstock/train/predictor.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <boost/test/unit_test.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>
#include <vector>

using namespace penstock;
using namespace penstock::test;
using nlohmann::json;

namespace {

/// A run of 14 batches that was stopped after the eighth: two of the three of its third step.
struct begun_file {
  training_file data{split::rows};
  train::trainer_options options = begun_options();
  whole_run run{data, options, gpu::device::host()};
  std::filesystem::path file = data.path("c.h5"), forged = data.path("forged.h5");
  json saved;  // the text
  std::vector<train::state_item> items;

  begun_file() {
    save_after(8, data, options, gpu::device::host(), 0, file);
    saved = json::parse(*io::read_attribute(file, "/", "penstock"));
    items = run.trainer.stage().state();
    for (const auto& item : run.trainer.stage().gradients()) items.push_back(item);
    for (const char* path : {"/normalisation/mean", "/normalisation/deviation"})
      items.push_back({path, type::float64, {training_file::columns}, nullptr});
  }

  /// Writes the file anew with `change` of its text, and these items. Its checksums are right.
  void forge(const std::function<void(json&)>& change, const std::vector<train::state_item>& arrays) {
    json changed = saved;
    changed["sealed"] = false;
    change(changed);
    io::writer to(forged);
    for (const auto& item : arrays) {
      std::size_t bytes = size_of(item.element);
      for (const auto extent : item.shape) bytes *= extent;
      std::vector<std::byte> values(bytes);
      to.create(item.path, item.element, item.shape);
      to.write_rows(item.path, 0, item.shape[0], values);
      if (changed.at("checksums").contains(item.path)) changed["checksums"][item.path] = sum_of(values);
    }
    const std::string written = changed.dump();
    to.attribute("/", "penstock", written);
    to.attribute("/", "penstock_checksum", sum_of(std::as_bytes(std::span(written))));
    to.commit();
  }
  static std::string sum_of(std::span<const std::byte> bytes) {
    checksum sum;
    sum.add(bytes);
    return fmt::format("{:016x}", sum.value());
  }

  void check_refused(const std::vector<std::string>& words) {
    const auto before = run.state();
    BOOST_CHECK_EXCEPTION(run.trainer.resume(forged), penstock::error, [&](const penstock::error& e) {
      const std::string said = e.what();
      bool all = said.find("forged.h5") != std::string::npos && said.find('\n') == std::string::npos;
      for (const std::string& word : words) all = all && said.find(word) != std::string::npos;
      if (!all) BOOST_TEST_MESSAGE(said);
      return all;
    });
    BOOST_TEST((run.state() == before));
  }
  void refused(const std::vector<std::string>& words, const std::function<void(json&)>& change) {
    forge(change, items);
    check_refused(words);
  }
};

/// So many files more may be open than are now.
class few_more_files {
 public:
  explicit few_more_files(unsigned more) {
    const int free = ::dup(STDERR_FILENO);
    ::close(free);
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit now = before_;
    now.rlim_cur = static_cast<rlim_t>(free) + more;
    BOOST_TEST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &now) == 0);
  }
  ~few_more_files() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  few_more_files(const few_more_files&) = delete;
  few_more_files& operator=(const few_more_files&) = delete;

 private:
  rlimit before_{};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(begun_step_files)

BOOST_AUTO_TEST_CASE(one_of_more_arrays_than_files_may_be_open_is_taken_and_predicts) {
  const training_file data(split::rows);
  auto options = begun_options();
  options.stage.model.hidden.assign(12, 24);
  const auto file = data.path("deep.h5");
  save_after(8, data, options, gpu::device::host(), 0, file);
  whole_run straight(data, options, gpu::device::host()), resumed(data, options, gpu::device::host());
  straight.epoch();
  const auto model = train::options_of(file);
  const auto memory = std::make_shared<gpu::memory>(gpu::device::host(), train::plan(gpu::device::host(), model));
  train::predictor predictor(gpu::stream_ref{}, model, memory);
  {
    const few_more_files limit(12);  // of 26 arrays of the model, 52 of moments, and 26 of gradients
    BOOST_TEST(resumed.trainer.resume(file) == "");
    BOOST_CHECK_NO_THROW(predictor.load(file));
  }
  BOOST_TEST(resumed.trainer.position().begun.batches == 2u);
  BOOST_TEST(resumed.epoch().complete);
  BOOST_TEST((resumed.state() == straight.state()));
}

BOOST_FIXTURE_TEST_CASE(gradients_are_plain_datasets_that_checkpoints_between_steps_lack, begun_file) {
  for (const char* path : {"/gradients/layer0/weight", "/gradients/layer0/bias", "/gradients/layer1/weight"})
    BOOST_CHECK_NO_THROW(io::row_reader({{file, path}}));
  // What a version that knows no begun steps goes on with: the beginning of the step.
  BOOST_TEST(saved.at("next_row") == 6 * split::batch_rows);
  BOOST_TEST(saved.at("training").at("rows") == 6 * split::batch_rows);
  BOOST_TEST(saved.at("begun_step").at("running").at("rows") == 8 * split::batch_rows);
  BOOST_TEST(saved.at("begun_step").at("weight") == 2.0 * split::batch_rows);
  save_after(9, data, options, gpu::device::host(), 0, forged);
  BOOST_CHECK_THROW(io::row_reader({{forged, "/gradients/layer0/weight"}}), penstock::error);
  const std::size_t gradient_bytes = (12 * 24 + 24 + 24 * 4 + 4) * sizeof(float);
  BOOST_TEST(std::filesystem::file_size(forged) + gradient_bytes < std::filesystem::file_size(file));
}

BOOST_FIXTURE_TEST_CASE(weights_of_one_predict, begun_file) {
  const auto model = train::options_of(file);
  const auto memory = std::make_shared<gpu::memory>(gpu::device::host(), train::plan(gpu::device::host(), model));
  train::predictor predictor(gpu::stream_ref{}, model, memory);
  BOOST_CHECK_NO_THROW(predictor.load(file));
}

BOOST_FIXTURE_TEST_CASE(what_is_forged_as_it_was_is_taken, begun_file) {
  forge([](json&) {}, items);
  BOOST_TEST(run.trainer.resume(forged) == "");
  BOOST_TEST(run.trainer.position().begun.batches == 2u);
  BOOST_TEST(run.epoch().complete);
}

BOOST_FIXTURE_TEST_CASE(a_place_that_no_step_has_is_refused_with_both_sides, begun_file) {
  const auto begun = [&](const char* name, const json& value, const std::vector<std::string>& words) {
    refused(words, [&](json& text) { text["begun_step"][name] = value; });
  };
  begun("batches", 3, {"after 3 batches", "a step of 3"});
  begun("batches", 0, {"after 0 batches", "a step of 3"});
  begun("batches", ~std::uint64_t{0}, {"18446744073709551615 batches", "a step of 3"});
  begun("of", 4, {"4 batches of 16 rows", "have 48 rows"});
  begun("of", ~std::uint64_t{0}, {"18446744073709551615 batches of 16 rows", "have 48 rows"});
  begun("batch_rows", 0, {"3 batches of 0 rows", "have 48 rows"});
  begun("batch_rows", 8, {"3 batches of 8 rows", "have 48 rows"});
  begun("rows", 33, {"2 batches of 16 rows", "33 rows"});
  begun("weight", -1, {"weigh -1"});
  begun("bad_loss", 95, {"row 95", "96 to 127"});
  begun("bad_input", 128, {"row 128", "96 to 127"});
  for (const char* name : {"bad_input", "bad_loss"})  // there is no second input
    begun(name, train::progress::of_second_input + 100, {"row 4611686018427388004", "96 to 127"});
  for (const char* name : {"batches", "of", "batch_rows", "rows", "weight", "bad_loss"}) {
    begun(name, "many", {"lacks a value"});
    refused({"lacks a value"}, [&](json& text) { text["begun_step"].erase(name); });
  }
  begun("running", json::array(), {"lacks a value"});
  begun("weight", json(), {"lacks a value"});
  refused({"lacks a value"}, [](json& text) { text["begun_step"] = 7; });
  refused({"row 112", "48 rows"}, [](json& text) { text["next_row"] = 112; });
  refused({"row 18446744073709551600", "48 rows"}, [](json& text) { text["next_row"] = 18446744073709551600u; });
}

BOOST_FIXTURE_TEST_CASE(gradients_that_are_missing_too_many_or_of_another_shape_are_refused, begun_file) {
  const std::string first = "/gradients/layer0/bias", more = "/gradients/layer2/bias";
  refused({"its step that has begun are /gradients/layer0/weight", "this model's are /gradients/layer0/bias"},
          [&](json& text) { text["checksums"].erase(first); });
  refused({more, "this model's are"}, [&](json& text) { text["checksums"][more] = "0"; });
  refused({"are missing", "this model's are /gradients/layer0/bias"}, [](json& text) {
    json kept = json::object();
    for (const auto& [path, sum] : text["checksums"].items())
      if (path.find("gradients") == std::string::npos) kept[path] = sum;
    text["checksums"] = kept;
  });
  refused({"it holds gradients", first, "no step"}, [](json& text) { text.erase("begun_step"); });
  const auto at = std::find_if(items.begin(), items.end(), [&](const auto& item) { return item.path == first; });
  const train::state_item right = *at;
  *at = {first, type::float32, {23}, nullptr};
  refused({first, "of shape 23", "of shape 24"}, [](json&) {});
  *at = {first, type::float64, {24}, nullptr};
  refused({first, "float64", "float32"}, [](json&) {});
  *at = {"/elsewhere", type::float32, {24}, nullptr};
  refused({first}, [](json&) {});
  *at = right;
  forge([](json&) {}, items);
  BOOST_CHECK_NO_THROW(run.trainer.resume(forged));
}

BOOST_FIXTURE_TEST_CASE(one_that_does_not_end_within_its_epoch_is_refused_before_a_step, begun_file) {
  // The epoch's last step has two batches, from batch 12 on.
  forge([](json& text) { text["next_row"] = 12 * split::batch_rows; }, items);
  run.trainer.resume(forged);
  const auto before = run.state();
  BOOST_CHECK_EXCEPTION(run.epoch(), train::error, [](const train::error& e) {
    const std::string said = e.what();
    return said.find("2 batches from batch 12 on") != std::string::npos &&
           said.find("an epoch has 14 batches") != std::string::npos;
  });
  BOOST_TEST((run.state() == before));
}

BOOST_FIXTURE_TEST_CASE(a_flipped_byte_is_refused_in_a_sentence, begun_file) {
  std::ifstream in(file, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  for (std::size_t at = 0; at < whole.size(); at += 211) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    std::ofstream(forged, std::ios::binary) << flipped;
    check_refused({});
  }
}

BOOST_AUTO_TEST_SUITE_END()
