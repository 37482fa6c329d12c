#include "fixture.hpp"

#include <boost/test/unit_test.hpp>

using namespace penstock;
using penstock::test::host_stage;
using penstock::test::rows_of;

namespace {

constexpr std::size_t rows = 37;

train::stage_options deep(train::precision precision) {
  return {.model = {.inputs = 6,
                    .hidden = {20, 20, 20, 20, 20},
                    .outputs = 4,
                    .activation = train::activation::gelu,
                    .layer_norm = true,
                    .dropout = 0.2},
          .rows = rows,
          .precision = precision,
          .seed = 3};
}

/// Gradients, and the parameters after some steps of two batches.
std::vector<float> trained(const train::stage_options& options) {
  const rows_of<float> data(2 * rows, 6, 4);
  host_stage<float> s(options);
  std::vector<float> all;
  for (int step = 0; step < 3; ++step) {
    s.accumulate(data, 0, rows);
    s.accumulate(data, rows, rows - 5);
    all.insert(all.end(), s.gradients().begin(), s.gradients().end());
    s.stage.update(0.01);
  }
  all.insert(all.end(), s.parameters().begin(), s.parameters().end());
  return all;
}

std::size_t bytes_of_activations(std::size_t segment) {
  train::stage_options options{.model = {.inputs = 6, .hidden = std::vector<std::size_t>(15, 32), .outputs = 32},
                               .rows = 128};
  options.recompute_layers = segment;
  std::size_t bytes = 0;
  const gpu::ledger ledger = train::plan(gpu::device::host(), options);
  for (const auto& item : ledger.items())
    if (item.name.starts_with("train: activations")) bytes += item.bytes;
  return bytes;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(recompute)

BOOST_AUTO_TEST_CASE(gradients_and_steps_have_the_same_bits_whatever_is_kept) {
  for (const auto precision : {train::precision::float32, train::precision::bf16}) {
    train::stage_options options = deep(precision);
    const auto all_kept = trained(options);
    for (const std::size_t segment : {1u, 2u, 3u, 5u, 20u, 21u, 50u}) {
      options.recompute_layers = segment;
      BOOST_TEST(test::same_bits<float>(trained(options), all_kept), "segments of " << segment);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_plan_holds_the_ends_of_segments_and_the_inside_of_one) {
  constexpr std::size_t one = 128 * 32 * sizeof(float);
  BOOST_TEST(bytes_of_activations(0) == 16 * one);
  BOOST_TEST(bytes_of_activations(1) == 16 * one);
  BOOST_TEST(bytes_of_activations(2) == (8 + 1) * one);
  BOOST_TEST(bytes_of_activations(4) == (4 + 3) * one);
  BOOST_TEST(bytes_of_activations(5) == (4 + 4) * one);  // the ends of layers 5, 10, 15 and 16
  BOOST_TEST(bytes_of_activations(8) == (2 + 7) * one);
}

BOOST_AUTO_TEST_SUITE_END()
