// What cuBLASLt chose for products, kept in checkpoints.
#include "cuda/chosen_algorithms.hpp"

#include "device_stage.hpp"
#include "gpu.hpp"
#include "training_file.hpp"

#include <penstock/bytes.hpp>

#include <boost/test/unit_test.hpp>

#include <string>

using namespace penstock;
using namespace penstock::literals;
using penstock::test::device_stage;
using penstock::test::rows_of;
using penstock::test::small_trainer;
using penstock::test::training_file;
using penstock::test::training_run;
using train::cuda::chosen_algorithm;

namespace {

/// A product of few values by a large depth: on a large device it is split where there is a workspace for the parts.
const train::stage_options wide{
    .model = {.inputs = 4096, .hidden = {512, 256}, .outputs = 10}, .rows = 256, .precision = train::precision::tf32};

train::stage_options with_workspace(std::size_t bytes) {
  train::stage_options options = wide;
  options.workspace_bytes = bytes;
  return options;
}

std::vector<float> trained(device_stage<float>& s) {
  for (int step = 0; step < 5; ++step) {
    s.accumulate(0, 256, 256);
    s.stage.update(1e-3);
  }
  return s.item("train: parameters");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(chosen_algorithms)

BOOST_AUTO_TEST_CASE(what_is_written_is_read_and_what_is_damaged_is_not) {
  const std::vector<chosen_algorithm> two{{{1, 2, 3, 0xff, 4, 5, 6, 7, 8, 9}, {~0ull, 1, 2, 3, 4, 5, 6, 7}}, {}};
  const std::string text = to_text(two);
  BOOST_TEST(text.starts_with("1 2 3 ff 4 5 6 7 8 9 ffffffffffffffff 1 2 3 4 5 6 7\n"));
  const auto read = train::cuda::parse_algorithms(text);
  BOOST_TEST_REQUIRE(read.has_value());
  BOOST_TEST((*read == two));
  BOOST_TEST(train::cuda::parse_algorithms("")->empty());
  for (const std::string& damaged : {text.substr(0, text.size() - 1), text.substr(2, text.size() - 3), "x" + text})
    BOOST_TEST(!train::cuda::parse_algorithms(damaged).has_value());
}

BOOST_AUTO_TEST_CASE(what_is_left_is_counted_with_the_workspace_that_it_would_take) {
  train::cuda::left_algorithms left{.all = 7};
  left += {.all = 5};
  BOOST_TEST(why_left(left, 4096) == "");
  left += {.all = 1, .too_large = 1, .needed_bytes = 1024};
  left += {.all = 2, .too_large = 1, .needed_bytes = 8192};
  BOOST_TEST(why_left(left, 4096) ==
             "2 of 15 algorithms of products are chosen afresh: 2 need a workspace of up to 8192 bytes, and there are "
             "4096");
  left += {.all = 1, .refused = 1};
  BOOST_TEST(why_left(left, 4096) ==
             "3 of 16 algorithms of products are chosen afresh: 2 need a workspace of up to 8192 bytes, and there are "
             "4096, and 1 are for other products");
}

BOOST_AUTO_TEST_CASE(a_stage_takes_the_algorithms_of_another_and_gives_its_bits, test::on_gpu()) {
  const rows_of<float> data(256, 4096, 10);
  const train::stage_options large = with_workspace(64_MiB);
  device_stage<float> first(test::first_gpu(), with_workspace(1_KiB), data), second(test::first_gpu(), large, data),
      other(test::first_gpu(), large, data);
  const auto expected = trained(first);
  const std::string chosen = first.stage.algorithms();
  BOOST_TEST(chosen.find("cuBLASLt") != std::string::npos);
  // By itself, the larger workspace leads to others.
  trained(other);
  BOOST_TEST(other.stage.algorithms() != chosen);
  BOOST_TEST(second.stage.set_algorithms(chosen) == "");
  BOOST_TEST(second.stage.algorithms() == chosen);  // as a run saves it that goes on, and is stopped before a step
  BOOST_TEST(test::same_bits<float>(trained(second), expected));
  BOOST_TEST(second.stage.algorithms() == chosen);
  // After steps were recorded, too.
  BOOST_TEST(other.stage.set_algorithms(chosen) == "");
  trained(other);
  BOOST_TEST(other.stage.algorithms() == chosen);
}

BOOST_AUTO_TEST_CASE(those_that_do_not_fit_the_workspace_are_not_taken_and_that_is_said, test::on_gpu()) {
  const rows_of<float> data(256, 4096, 10);
  device_stage<float> large(test::first_gpu(), with_workspace(64_MiB), data),
      none(test::first_gpu(), with_workspace(1_KiB), data), afresh(test::first_gpu(), with_workspace(1_KiB), data);
  trained(large);
  const std::string said = none.stage.set_algorithms(large.stage.algorithms());
  BOOST_TEST(said.find("algorithms of products are chosen afresh") != std::string::npos, said);
  BOOST_TEST(said.find("need a workspace of up to") != std::string::npos, said);
  BOOST_TEST(said.ends_with("bytes, and there are 1024"), said);
  trained(none);  // with others in their place
  BOOST_TEST(none.stage.algorithms() != large.stage.algorithms());
  BOOST_TEST(none.stage.progress().steps == 5u);
}

BOOST_AUTO_TEST_CASE(a_run_resumed_with_a_smaller_workspace_says_that_bits_will_differ, test::on_gpu()) {
  const training_file data;
  auto options = small_trainer();
  options.stage.model.hidden = {1024, 1024};
  options.stage.precision = train::precision::tf32;
  options.stage.workspace_bytes = 64_MiB;
  training_run whole(data, options, test::first_gpu());
  whole.trainer.train_epoch(whole.planned.training);
  whole.trainer.save(data.path("c.h5"));
  training_run same(data, options, test::first_gpu());
  BOOST_TEST(same.trainer.resume(data.path("c.h5")) == "");
  options.stage.workspace_bytes = 1_KiB;
  training_run smaller(data, options, test::first_gpu());
  const std::string said = smaller.trainer.resume(data.path("c.h5"));
  BOOST_TEST(said.find("need a workspace of up to") != std::string::npos, said);
  BOOST_TEST(smaller.trainer.train_epoch(smaller.planned.training).complete);
}

BOOST_AUTO_TEST_CASE(those_of_another_card_or_version_are_not_taken_and_that_is_said, test::on_gpu()) {
  const rows_of<float> data(256, 4096, 10);
  device_stage<float> s(test::first_gpu(), wide, data);
  trained(s);
  const std::string chosen = s.stage.algorithms();
  BOOST_TEST(s.stage.set_algorithms("Another card" + chosen).find("Another card") != std::string::npos);
  BOOST_TEST(s.stage.set_algorithms("").find("none are kept") != std::string::npos);
  BOOST_TEST(s.stage.set_algorithms(chosen + "damage").find("cannot be read") != std::string::npos);
  trained(s);
  BOOST_TEST(s.stage.algorithms() == chosen);
}

BOOST_AUTO_TEST_CASE(a_run_resumed_on_the_device_gives_the_bits_of_the_one_that_was_not_stopped, test::on_gpu()) {
  const training_file data;
  const auto options = small_trainer(32, 3);
  const auto file = data.path("c.h5");
  training_run whole(data, options, test::first_gpu());
  whole.trainer.normalise_from(whole.planned.training);
  whole.trainer.train_epoch(whole.planned.training);
  whole.trainer.save(file);
  whole.trainer.train_epoch(whole.planned.training);
  training_run resumed(data, options, test::first_gpu());
  BOOST_TEST(resumed.trainer.resume(file) == "");
  resumed.trainer.train_epoch(resumed.planned.training);
  BOOST_TEST(test::same_bits<float>(resumed.weights(), whole.weights()));
  // On the host sums have another order, and that is said.
  training_run on_host(data, options);
  BOOST_TEST(on_host.trainer.resume(file).find("another order") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
