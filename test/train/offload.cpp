// Optimizer state and activations that wait in pinned memory: the same bits, and a peak that falls by what is moved.
#include "device_stage.hpp"
#include "gpu.hpp"
#include "output_ring.hpp"
#include "piece_ring.hpp"
#include "training_file.hpp"

#include <boost/test/unit_test.hpp>

#include <penstock/train/error.hpp>

#include <atomic>
#include <string_view>

using namespace penstock;
using namespace penstock::literals;
using gpu::memory_kind;
using penstock::test::device_stage;
using penstock::test::rows_of;

namespace {

constexpr std::size_t rows = 37;

train::stage_options deep(train::precision precision, std::size_t width = 20) {
  return {.model = {.inputs = 6,
                    .hidden = std::vector<std::size_t>(6, width),
                    .outputs = 4,
                    .activation = train::activation::gelu,
                    .layer_norm = true,
                    .dropout = 0.2},
          .rows = rows,
          .precision = precision,
          .seed = 3};
}

/// Gradients, and the parameters after some steps of two batches, the second one short; evaluated in between.
std::vector<float> trained(gpu::device device, const train::stage_options& options) {
  const rows_of<float> data(2 * rows, options.model.inputs, options.model.outputs);
  device_stage<float> s(device, options, data);
  std::vector<float> all;
  const auto keep = [&](const char* name) {
    const std::vector<float> values = s.item(name);
    all.insert(all.end(), values.begin(), values.end());
  };
  for (int step = 0; step < 5; ++step) {
    s.accumulate(0, rows, rows);
    s.evaluate(rows);
    s.accumulate(rows, rows, rows - 5);
    keep("train: gradients");
    s.stage.update(0.01);
  }
  s.accumulate(0, rows - 3, rows - 3);
  keep("train: gradients");
  keep("train: parameters");
  for (const train::state_item& item : s.stage.state()) {
    std::vector<float> values(item.shape.front() * (item.shape.size() > 1 ? item.shape.back() : 1));
    s.stage.read_state(item, 0, reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(float));
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

void compare_with_all_on_the_device(gpu::device device, train::stage_options options) {
  const auto expected = trained(device, options);
  for (const bool optimizer : {false, true})
    for (const bool activations : {false, true}) {
      options.offload = {.optimizer = optimizer, .activations = activations, .ring_bytes = 24_KiB};
      BOOST_TEST(test::same_bits<float>(trained(device, options), expected),
                 "optimizer " << optimizer << ", activations " << activations);
    }
}

std::size_t bytes_of(const gpu::ledger& ledger, memory_kind kind, std::string_view beginning) {
  std::size_t bytes = 0;
  for (const auto& item : ledger.items())
    if (item.kind == kind && item.name.starts_with(beginning)) bytes += item.bytes;
  return bytes;
}

train::stage_options wide() {
  return {.model = {.inputs = 256, .hidden = {256, 256, 256, 256, 256}, .outputs = 256}, .rows = 128};
}
constexpr std::size_t one_output = 128 * 256 * sizeof(float);
constexpr std::size_t wide_parameters = 6 * (256 * 256 + 256);

}  // namespace

BOOST_AUTO_TEST_SUITE(offload)

BOOST_AUTO_TEST_CASE(pieces_cover_the_arrays_once_and_their_ring_takes_what_it_may) {
  // 1000 elements of two arrays of 4 bytes: a quarter of 8000 bytes is 2000, and four pieces of twice 4 bytes are
  // shorter than the least.
  const train::piece_ring small = train::plan_pieces(1000, 2, 4, 1_MiB);
  BOOST_TEST(small.piece == 128u);
  BOOST_TEST(small.pieces() == 8u);
  BOOST_TEST(small.first(7) == 896u);
  BOOST_TEST(small.count(0) == 128u);
  BOOST_TEST(small.count(7) == 104u);
  // 64 KiB for four pieces of two arrays of 4 bytes: 2048 elements.
  const train::piece_ring large = train::plan_pieces(1'000'000, 2, 4, 64_KiB);
  BOOST_TEST(large.piece == 2048u);
  BOOST_TEST(large.pieces() == 489u);
  BOOST_TEST(large.count(488) == 576u);
  BOOST_TEST(large.ring_elements(2) * 4 == 64_KiB);
  BOOST_TEST(train::plan_pieces(0, 2, 4, 1_MiB).pieces() == 0u);
}

BOOST_AUTO_TEST_CASE(all_but_the_last_three_outputs_are_moved) {
  for (const std::size_t outputs : {0u, 1u, 3u}) BOOST_TEST(train::output_places{outputs}.moved() == 0u);
  BOOST_TEST(train::output_places{4}.moved() == 1u);
  BOOST_TEST(train::output_places{12}.moved() == 9u);
}

BOOST_AUTO_TEST_CASE(steps_have_the_same_bits_wherever_state_and_activations_wait) {
  const gpu::device host = gpu::device::host();
  for (const auto precision : {train::precision::float32, train::precision::bf16, train::precision::fp16})
    compare_with_all_on_the_device(host, deep(precision));
}

BOOST_AUTO_TEST_CASE(steps_have_the_same_bits_with_sgd_and_with_layers_that_are_computed_again) {
  const gpu::device host = gpu::device::host();
  train::stage_options options = deep(train::precision::float32);
  for (const std::size_t segment : {2u, 3u, 5u, 7u}) {
    options.recompute_layers = segment;
    compare_with_all_on_the_device(host, options);
  }
  options.optimizer = train::sgd{.learning_rate = 0.1, .momentum = 0.9, .nesterov = true};
  compare_with_all_on_the_device(host, options);
  options.optimizer = train::sgd{.momentum = 0};
  compare_with_all_on_the_device(host, options);
  // Fewer outputs than the ring has places: nothing is moved.
  options.model.hidden = {20};
  options.model.layer_norm = false;
  compare_with_all_on_the_device(host, options);
}

BOOST_AUTO_TEST_CASE(the_peak_falls_by_the_moments_less_their_ring) {
  const gpu::device host = gpu::device::host();
  train::stage_options options = wide();
  const gpu::ledger before = train::plan(host, options);
  options.offload = {.optimizer = true, .ring_bytes = 256_KiB};
  const gpu::ledger after = train::plan(host, options);
  // 256 KiB hold four pieces of 8192 parameters and their two moments.
  BOOST_TEST(bytes_of(after, memory_kind::device, "train: ring of moments") == 256_KiB);
  BOOST_TEST(before.total(memory_kind::device) - after.total(memory_kind::device) ==
             2 * wide_parameters * sizeof(float) - 256_KiB);
  BOOST_TEST(after.total(memory_kind::pinned) - before.total(memory_kind::pinned) ==
             2 * wide_parameters * sizeof(float));
  // A ring is at most a quarter of the moments.
  options.offload.ring_bytes = 1_GiB;
  BOOST_TEST(bytes_of(train::plan(host, options), memory_kind::device, "train: ring of moments") <=
             2 * wide_parameters * sizeof(float) / 4);
}

BOOST_AUTO_TEST_CASE(the_peak_falls_by_the_activations_less_their_ring) {
  const gpu::device host = gpu::device::host();
  train::stage_options options = wide();
  const gpu::ledger before = train::plan(host, options);
  options.offload = {.activations = true};
  const gpu::ledger after = train::plan(host, options);
  // The inputs and the outputs of five layers give way to a ring of three; the first three of them wait in pinned
  // memory.
  BOOST_TEST(before.total(memory_kind::device) - after.total(memory_kind::device) == (6 - 3) * one_output);
  BOOST_TEST(after.total(memory_kind::pinned) - before.total(memory_kind::pinned) == 3 * one_output);
  // Of segments of two layers, the inputs and the ends of two are kept: no more than the ring has places.
  options.recompute_layers = 2;
  BOOST_TEST(bytes_of(train::plan(host, options), memory_kind::pinned, "train: activations") == 0u);
}

BOOST_AUTO_TEST_CASE(places_are_as_wide_as_the_widest_that_they_hold) {
  train::stage_options options{.model = {.inputs = 10, .hidden = {20, 30, 40, 50}, .outputs = 60}, .rows = 128};
  options.offload = {.activations = true};
  // 10 and 40 share a place, 20 and 50 another; 30 has one of its own.
  const gpu::ledger ledger = train::plan(gpu::device::host(), options);
  BOOST_TEST(bytes_of(ledger, memory_kind::device, "train: ring of activations") == 128 * (40 + 50 + 30) * 4);
  BOOST_TEST(bytes_of(ledger, memory_kind::pinned, "train: inputs that wait") == 128 * 10 * 4);
  BOOST_TEST(bytes_of(ledger, memory_kind::pinned, "train: activations of layer") == 128 * 20 * 4);
}

BOOST_AUTO_TEST_CASE(steps_on_cuda_have_the_same_bits_wherever_state_and_activations_wait, test::on_gpu()) {
  const gpu::device device = test::first_gpu();
  for (const auto precision : {train::precision::float32, train::precision::bf16, train::precision::fp16}) {
    train::stage_options options = deep(precision, 128);
    compare_with_all_on_the_device(device, options);
    options.recompute_layers = 2;
    compare_with_all_on_the_device(device, options);
  }
  train::stage_options options = wide();
  options.rows = rows;
  compare_with_all_on_the_device(device, options);
}

/// Fails at the copy with this number, counted from when it is armed.
struct failing_copy final : fault_injector {
  std::atomic<int> left{-1};
  fault before(fault_site site, std::string_view what, std::uint64_t, std::size_t) override {
    fault f;
    if (site == fault_site::cuda_call && what == "cudaMemcpyAsync" && left >= 0 && left-- == 0) f.error = 1;
    return f;
  }
};

BOOST_AUTO_TEST_CASE(parameters_that_an_update_left_halfway_are_not_used_until_all_state_is_written_anew) {
  const auto copies = std::make_shared<failing_copy>();
  const gpu::stream stream(gpu::device::host(), false, copies);
  train::stage_options options = wide();
  options.offload = {.optimizer = true, .ring_bytes = 64_KiB};
  train::stage stage(stream, options,
                     std::make_shared<gpu::memory>(stream.device(), train::plan(stream.device(), options)));
  const rows_of<float> data(128, 256, 256);
  const auto step = [&] {
    stage.accumulate(data.x.data(), data.labels.data(), 128, 128);
    stage.update(0.01);
  };
  const auto state = [&] { return test::weights_of(stage); };
  step();
  const auto saved = state();
  step();
  const auto expected = state();

  const auto restore = [&] {
    const float* from = saved.data();
    for (const train::state_item& item : stage.state()) {
      std::size_t count = 1;
      for (const auto extent : item.shape) count *= extent;
      stage.write_state(item, 0, reinterpret_cast<const std::byte*>(from), count * sizeof(float));
      from += count;
    }
    stage.set_steps(1);
  };
  restore();
  stage.accumulate(data.x.data(), data.labels.data(), 128, 128);
  copies->left = 21;
  BOOST_CHECK_THROW(stage.update(0.01), gpu::error);
  copies->left = -1;
  const auto torn = [](const train::error& e) { return std::string(e.what()).find("midway") != std::string::npos; };
  BOOST_CHECK_EXCEPTION(stage.accumulate(data.x.data(), data.labels.data(), 128, 128), train::error, torn);
  BOOST_CHECK_EXCEPTION(stage.evaluate(data.x.data(), data.labels.data(), 128, 128), train::error, torn);
  BOOST_CHECK_EXCEPTION(stage.update(0.01), train::error, torn);
  BOOST_CHECK_EXCEPTION(state(), train::error, torn);
  stage.write_state(stage.state()[0], 0, reinterpret_cast<const std::byte*>(saved.data()), sizeof(float));
  stage.set_steps(1);
  BOOST_CHECK_EXCEPTION(state(), train::error, torn);
  restore();
  step();
  BOOST_TEST(test::same_bits<float>(state(), expected));
}

BOOST_AUTO_TEST_SUITE_END()
