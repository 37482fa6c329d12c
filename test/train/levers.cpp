#include "large_allocations.hpp"
#include "row_loss.hpp"
#include "step_state.hpp"

#include <penstock/bytes.hpp>
#include <penstock/train/levers.hpp>

#include <boost/test/unit_test.hpp>

#include <limits>

using namespace penstock;
using namespace penstock::literals;
using train::lever;

namespace {

const gpu::device host = gpu::device::host();

// A layer of 256 x 256 and its biases.
constexpr std::size_t layer_bytes = (256 * 256 + 256) * 4;
constexpr std::size_t output_bytes = 256 * 4;  // of a row

train::stage_options six_layers(train::optimizer_options optimizer = train::adamw{}) {
  return {.model = {.inputs = 256, .hidden = {256, 256, 256, 256, 256}, .outputs = 256},
          .optimizer = optimizer,
          .rows = 256,
          .threads = 1};
}

train::stage_options eight_layers(train::optimizer_options optimizer = train::adamw{}) {
  train::stage_options options = six_layers(optimizer);
  options.model.hidden.assign(7, 256);
  return options;
}

/// Device bytes of so many rows, counted by hand: parameters, gradients and moments; inputs, so many outputs, the
/// gradients of two; and what each column, each row and the step take.
constexpr std::size_t counted(std::size_t rows, std::size_t arrays = 4, std::size_t outputs = 6,
                              std::size_t layers = 6) {
  const std::size_t columns = 256 * 4 + 256 * 4 + 3 * 256 * 8;
  return arrays * layers * layer_bytes + rows * (1 + outputs + 2) * output_bytes + columns +
         align_up(rows * sizeof(train::row_score<float>), 512) + align_up(sizeof(train::step_state), 512);
}

gpu::budget device_budget(std::size_t bytes) { return {.device_bytes = bytes, .pinned_bytes = 64_MiB}; }

train::fitted_step fitted(const train::stage_options& asked, std::size_t device_bytes, std::size_t floor = 128) {
  const auto step = train::fit_step(host, asked, device_budget(device_bytes), floor);
  BOOST_REQUIRE(step.has_value());
  BOOST_TEST(step->stage.rows * step->accumulate == asked.rows);
  BOOST_TEST(step->reasons.size() == step->used.size());
  BOOST_TEST(train::plan(host, step->stage).fits(device_budget(device_bytes)));
  return *step;
}

bool used(const train::fitted_step& step, const std::vector<lever>& expected) { return step.used == expected; }

}  // namespace

BOOST_AUTO_TEST_SUITE(levers)

BOOST_AUTO_TEST_CASE(the_largest_batch_fits_and_one_row_more_does_not) {
  const train::stage_options options = six_layers();
  for (const std::size_t rows : {1u, 100u, 1000u}) {
    BOOST_TEST(train::plan(host,
                           [&] {
                             auto o = options;
                             o.rows = rows;
                             return o;
                           }())
                   .total(gpu::memory_kind::device) == counted(rows));
    for (const std::size_t spare : {std::size_t{0}, counted(rows + 1) - counted(rows) - 1})
      BOOST_TEST(train::largest_rows(host, options, device_budget(counted(rows) + spare)) == rows);
  }
  BOOST_TEST(train::largest_rows(host, options, device_budget(counted(1) - 1)) == 0u);
  BOOST_TEST(train::largest_rows(host, options, device_budget(counted(100)), 77) == 77u);
}

BOOST_AUTO_TEST_CASE(what_fits_is_left_as_it_is) {
  const auto step = fitted(six_layers(), counted(256));
  BOOST_TEST(step.stage.rows == 256u);
  BOOST_TEST(used(step, {}));
}

BOOST_AUTO_TEST_CASE(first_come_smaller_batches_that_make_the_same_step) {
  const auto step = fitted(six_layers(), counted(256) - 1);
  BOOST_TEST(step.stage.rows == 128u);
  BOOST_TEST(step.accumulate == 2u);
  BOOST_TEST(used(step, {lever::micro_batch}));
  BOOST_TEST(step.stage.recompute_layers == 0u);
  // 250 = 2 * 5 * 5 * 5: of the rows that fit, the most that make up the step.
  train::stage_options options = six_layers();
  options.rows = 250;
  const auto uneven = fitted(options, counted(124), 10);
  BOOST_TEST(uneven.stage.rows == 50u);
  BOOST_TEST(uneven.accumulate == 5u);
}

BOOST_AUTO_TEST_CASE(at_the_floor_activations_are_computed_again) {
  const auto step = fitted(six_layers(), counted(128) - 1);
  // Of two layers each, the ends of three segments and the inside of one: four outputs in place of six. Segments of
  // three keep as many, and compute more.
  BOOST_TEST(step.stage.recompute_layers == 2u);
  BOOST_TEST(step.stage.rows == 128u);
  BOOST_TEST(used(step, {lever::micro_batch, lever::recompute}));
  BOOST_TEST(!step.stage.offload.optimizer);
  const auto at_its_limit = fitted(six_layers(), counted(128, 4, 4));
  BOOST_TEST(used(at_its_limit, {lever::micro_batch, lever::recompute}));
}

BOOST_AUTO_TEST_CASE(then_the_moments_leave_and_batches_may_be_large_again) {
  const auto step = fitted(six_layers(), counted(128, 4, 4) - 1);
  // The ring is a quarter of the moments, in pieces of 128 parameters: 4 x 24,576 of 8 bytes.
  constexpr std::size_t ring = 4 * 24'576 * 8;
  static_assert(counted(256, 2, 4) + ring < counted(128, 4, 4));
  BOOST_TEST(train::plan(host, step.stage).total(gpu::memory_kind::device) == counted(256, 2, 4) + ring);
  BOOST_TEST(step.stage.rows == 256u);
  BOOST_TEST(used(step, {lever::recompute, lever::offload_optimizer}));
}

BOOST_AUTO_TEST_CASE(then_activations_leave_and_levers_that_free_nothing_are_passed_over) {
  // No moments to move; layers are not computed again, as was asked for.
  train::stage_options asked = six_layers(train::sgd{.momentum = 0});
  asked.recompute_layers = 1;
  const auto step = fitted(asked, counted(128, 2) - 1);
  // The inputs and five outputs share three places.
  BOOST_TEST(used(step, {lever::micro_batch, lever::offload_activations}));
  BOOST_TEST(step.stage.rows == 128u);
  BOOST_TEST(step.stage.recompute_layers == 1u);
  BOOST_TEST(!step.stage.offload.optimizer);
  BOOST_TEST(train::plan(host, step.stage).total(gpu::memory_kind::device) == counted(128, 2, 3));
}

BOOST_AUTO_TEST_CASE(activations_leave_without_being_computed_again_where_that_takes_less) {
  // Of eight layers segments of two keep the outputs of five, four ends and the inside of one. Of ends that wait three
  // are on the device, and the inside of one; of all outputs that wait, three.
  const auto sgd = fitted(eight_layers(train::sgd{.momentum = 0}), counted(128, 2, 4, 8) - 1);
  BOOST_TEST(used(sgd, {lever::micro_batch, lever::offload_activations}));
  BOOST_TEST(sgd.stage.rows == 128u);
  BOOST_TEST(sgd.stage.recompute_layers == 0u);
  BOOST_TEST(train::plan(host, sgd.stage).total(gpu::memory_kind::device) == counted(128, 2, 3, 8));
  // With moments; the ring is a quarter of them, in pieces of 128 parameters.
  constexpr std::size_t ring = 4 * 32'896 * 8;
  const auto adamw = fitted(eight_layers(), counted(128, 2, 4, 8) + ring - 1);
  BOOST_TEST(used(adamw, {lever::micro_batch, lever::offload_optimizer, lever::offload_activations}));
  BOOST_TEST(adamw.stage.rows == 128u);
  BOOST_TEST(train::plan(host, adamw.stage).total(gpu::memory_kind::device) == counted(128, 2, 3, 8) + ring);
  const auto below = fitted(eight_layers(), counted(64, 2, 4, 8) + ring - 1);
  BOOST_TEST(used(below, {lever::offload_optimizer, lever::offload_activations, lever::below_floor}));
  BOOST_TEST(below.stage.rows == 64u);
}

BOOST_AUTO_TEST_CASE(last_come_batches_below_the_floor) {
  train::stage_options asked = six_layers(train::sgd{.momentum = 0});
  asked.recompute_layers = 1;
  const auto step = fitted(asked, counted(64, 2, 3));
  BOOST_TEST(used(step, {lever::offload_activations, lever::below_floor}));
  BOOST_TEST(step.stage.rows == 64u);
  BOOST_TEST(step.accumulate == 4u);
  BOOST_TEST(used(fitted(asked, counted(128, 2, 3) - 1), {lever::below_floor}));  // 64 rows with all their outputs
  BOOST_TEST(fitted(asked, counted(1, 2, 3)).stage.rows == 1u);
  BOOST_TEST(!train::fit_step(host, asked, device_budget(counted(1, 2, 3) - 1)).has_value());
}

BOOST_AUTO_TEST_CASE(a_lever_that_other_memory_has_no_room_for_is_passed_over) {
  // Layers are not computed again, as was asked for; the moments of AdamW, 3.2 MB, never fit 2 MiB of pinned memory,
  // and the inputs and two outputs of 128 rows do.
  train::stage_options asked = six_layers();
  asked.recompute_layers = 1;
  const gpu::budget little{.device_bytes = counted(128, 4, 3), .pinned_bytes = 2_MiB};
  const auto step = train::fit_step(host, asked, little);
  BOOST_TEST_REQUIRE(step.has_value());
  BOOST_TEST(used(*step, {lever::micro_batch, lever::offload_activations}));
  BOOST_TEST(step->stage.rows == 128u);
  BOOST_TEST(train::plan(host, step->stage).fits(little));
}

BOOST_AUTO_TEST_CASE(below_the_floor_levers_are_only_those_that_fit) {
  // Pinned memory for a megabyte of staging and the step's state, and for nothing else.
  const gpu::budget none{.device_bytes = counted(64, 4, 4), .pinned_bytes = 1_MiB + 1_KiB};
  const auto step = train::fit_step(host, six_layers(), none);
  BOOST_TEST_REQUIRE(step.has_value());
  BOOST_TEST(used(*step, {lever::recompute, lever::below_floor}));
  BOOST_TEST(step->stage.rows == 64u);
  BOOST_TEST(step->reasons.size() == 2u);
}

BOOST_AUTO_TEST_CASE(below_the_floor_a_lever_that_would_leave_fewer_rows_is_passed_over) {
  train::stage_options asked = six_layers(train::sgd{.momentum = 0});
  asked.recompute_layers = 1;
  // The inputs and two outputs of 8 rows in pinned memory; without it 64 rows fit the device.
  const gpu::budget limits{.device_bytes = counted(64, 2), .pinned_bytes = 1_MiB + 1_KiB + 8 * 3 * output_bytes};
  const auto step = train::fit_step(host, asked, limits);
  BOOST_TEST_REQUIRE(step.has_value());
  BOOST_TEST(used(*step, {lever::below_floor}));
  BOOST_TEST(step->stage.rows == 64u);
}

BOOST_AUTO_TEST_CASE(below_the_floor_levers_that_leave_no_more_rows_are_passed_over) {
  // Moments of 0.26 MB are 16 rows of inputs: too few for 128 rows where 64 fit with all as it was asked for.
  const train::stage_options asked{
      .model = {.inputs = 4096, .hidden = {8}, .outputs = 2}, .optimizer = train::adamw{}, .rows = 256, .threads = 1};
  train::stage_options small = asked;
  small.rows = 64;
  const std::size_t bytes = train::plan(host, small).total(gpu::memory_kind::device);
  const auto step = fitted(asked, bytes);
  BOOST_TEST(used(step, {lever::below_floor}));
  BOOST_TEST(step.stage.rows == 64u);
  // One byte less, and moments that wait in pinned memory keep these 64 rows.
  const auto less = fitted(asked, bytes - 1);
  BOOST_TEST(used(less, {lever::offload_optimizer, lever::below_floor}));
  BOOST_TEST(less.stage.rows == 64u);
}

BOOST_AUTO_TEST_CASE(what_is_tried_last_where_nothing_fits_takes_the_least_of_the_device) {
  train::stage_options last;
  const train::fits_budget never = [&](const train::stage_options& tried) {
    last = tried;
    return false;
  };
  for (const std::size_t floor : {1u, 128u}) {
    BOOST_TEST(!train::fit_step(host, six_layers(), never, floor).has_value());
    BOOST_TEST(last.rows == 1u);
    BOOST_TEST(last.offload.optimizer);
    // Three outputs are on the device; with layers that are computed again it would be four.
    BOOST_TEST(last.offload.activations);
    BOOST_TEST(last.recompute_layers == 0u);
  }
}

BOOST_AUTO_TEST_CASE(segments_longer_than_the_model_are_one_of_all_its_layers) {
  train::stage_options options = six_layers();
  options.recompute_layers = 6;
  const std::size_t one_segment = train::plan(host, options).total(gpu::memory_kind::device);
  options.recompute_layers = std::numeric_limits<std::size_t>::max();
  const test::large_allocations large(64_KiB);
  BOOST_TEST(train::plan(host, options).total(gpu::memory_kind::device) == one_segment);
  options.recompute_layers = 1'000'000;
  BOOST_TEST(train::plan(host, options).total(gpu::memory_kind::device) == one_segment);
  BOOST_TEST(large.count() == 0u);
}

BOOST_AUTO_TEST_CASE(layers_of_a_head_are_computed_again_too) {
  train::stage_options pair = six_layers();
  pair.model = {.inputs = 256,
                .hidden = {},
                .outputs = 2,
                .pair = {.join = train::join::difference, .embedding = 8, .head = {256, 256, 256, 256, 256, 256}}};
  // Embedding, join, six layers of the head, and the last one.
  constexpr std::size_t layers = 9;
  const auto bytes_with = [&](std::size_t segment) {
    pair.recompute_layers = segment;
    return train::plan(host, pair).total(gpu::memory_kind::device);
  };
  std::size_t least = 0;
  for (std::size_t segment = 2; segment <= layers; ++segment)
    if (least == 0 || bytes_with(segment) < bytes_with(least)) least = segment;
  BOOST_TEST_REQUIRE(bytes_with(least) < bytes_with(0));
  pair.recompute_layers = 0;
  BOOST_TEST(train::best_segment(host, pair) == least);
}

BOOST_AUTO_TEST_CASE(a_batch_smaller_than_the_floor_is_its_own_floor) {
  train::stage_options asked = six_layers();
  asked.rows = 32;
  BOOST_TEST(used(fitted(asked, counted(32)), {}));
  BOOST_TEST(used(fitted(asked, counted(32) - 1), {lever::recompute}));
}

BOOST_AUTO_TEST_SUITE_END()
