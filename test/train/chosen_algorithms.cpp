// What cuBLASLt chose for products, kept in checkpoints.
#include "cuda/chosen_algorithms.hpp"

#include "device_stage.hpp"
#include "gpu.hpp"
#include "training_file.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

using namespace penstock;
using penstock::test::device_stage;
using penstock::test::rows_of;
using penstock::test::small_trainer;
using penstock::test::training_file;
using penstock::test::training_run;
using train::cuda::chosen_algorithm;

namespace {

const train::stage_options wide{
    .model = {.inputs = 784, .hidden = {512, 256}, .outputs = 10}, .rows = 256, .precision = train::precision::tf32};

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

BOOST_AUTO_TEST_CASE(a_stage_takes_the_algorithms_of_another_and_gives_its_bits, test::on_gpu()) {
  const rows_of<float> data(256, 784, 10);
  device_stage<float> first(test::first_gpu(), wide, data), second(test::first_gpu(), wide, data);
  const auto expected = trained(first);
  const std::string chosen = first.stage.algorithms();
  BOOST_TEST(chosen.find("cuBLASLt") != std::string::npos);
  BOOST_TEST(second.stage.set_algorithms(chosen) == "");
  BOOST_TEST(test::same_bits<float>(trained(second), expected));
  BOOST_TEST(second.stage.algorithms() == chosen);
  // After steps were recorded, too.
  BOOST_TEST(first.stage.set_algorithms(chosen) == "");
  trained(first);
  BOOST_TEST(first.stage.algorithms() == chosen);
}

BOOST_AUTO_TEST_CASE(those_of_another_card_or_version_are_not_taken_and_that_is_said, test::on_gpu()) {
  const rows_of<float> data(256, 784, 10);
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
