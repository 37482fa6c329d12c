// The same bits on CUDA: of a run again, of layers computed again, of a step in one launch.
#include "device_stage.hpp"
#include "gpu.hpp"

#include <boost/test/unit_test.hpp>

using namespace penstock;
using penstock::test::device_stage;
using penstock::test::rows_of;

BOOST_AUTO_TEST_SUITE(device_bits)

BOOST_AUTO_TEST_CASE(cuda_computes_layers_again_to_the_same_bits, test::on_gpu()) {
  const rows_of<float> data(128, 17, 7);
  train::stage_options options{
      .model = {.inputs = 17, .hidden = {64, 64, 64}, .outputs = 7, .layer_norm = true, .dropout = 0.2}, .rows = 64};
  const auto run = [&](std::size_t segment) {
    options.recompute_layers = segment;
    device_stage<float> s(test::first_gpu(), options, data);
    for (int step = 0; step < 3; ++step) {
      s.accumulate(0, 64, 64);
      s.accumulate(64, 64, 50);
      s.stage.update(0.01);
    }
    return s.item("train: parameters");
  };
  const auto all_kept = run(0);
  for (const std::size_t segment : {2u, 3u, 5u}) BOOST_TEST(test::same_bits<float>(run(segment), all_kept));
}

BOOST_AUTO_TEST_CASE(cuda_gives_the_same_bits_twice, test::on_gpu()) {
  const rows_of<float> data(512, 784, 10);
  const train::stage_options options{.model = {.inputs = 784, .hidden = {512, 256}, .outputs = 10}, .rows = 256};
  const auto run = [&] {
    device_stage<float> s(test::first_gpu(), options, data);
    for (int step = 0; step < 20; ++step) {
      s.accumulate(0, 256, 256);
      s.accumulate(256, 256, 200);
      s.stage.update(1e-3);
    }
    return s.item("train: parameters");
  };
  const auto first = run();
  for (int again = 0; again < 3; ++again) BOOST_TEST(test::same_bits<float>(run(), first));
}

BOOST_AUTO_TEST_CASE(a_step_of_one_batch_at_once_has_the_bits_of_its_parts_on_cuda, test::on_gpu()) {
  const rows_of<float> data(512, 784, 10);
  train::stage_options options{.model = {.inputs = 784, .hidden = {512, 256}, .outputs = 10}, .rows = 256};
  for (const auto precision : {train::precision::float32, train::precision::tf32, train::precision::bf16})
    for (const double dropout : {0.0, 0.3})
      for (const double clip_norm : {0.0, 0.5}) {
        options.precision = precision, options.model.dropout = dropout, options.clip_norm = clip_norm;
        device_stage<float> parts(test::first_gpu(), options, data), whole(test::first_gpu(), options, data);
        for (std::size_t step = 0; step < 20; ++step) {
          const std::size_t first = step % 2 * 256, valid = step % 5 == 0 ? 200 : 256;
          const double rate = 1e-3 / static_cast<double>(1 + step);
          parts.accumulate(first, 256, valid);
          parts.stage.update(rate);
          whole.step(first, 256, valid, rate);
        }
        BOOST_TEST(test::same_bits<float>(whole.item("train: parameters"), parts.item("train: parameters")));
        BOOST_TEST(whole.stage.progress().steps == 20u);
      }
}

BOOST_AUTO_TEST_SUITE_END()
