#include "small_file.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <penstock/fault.hpp>
#include <penstock/gpu/error.hpp>
#include <penstock/gpu/memory.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
namespace data = boost::unit_test::data;
using namespace penstock::literals;
using penstock::test::small_file;

namespace {
const auto every_device = data::make(penstock::test::devices());
const gpu::budget small{.device_bytes = 8_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB};
}  // namespace

BOOST_AUTO_TEST_SUITE(batches)

BOOST_DATA_TEST_CASE(the_last_batch_is_padded_with_zeros_and_masked, every_device, name) {
  const small_file file(70, 16);
  auto pipeline = (pp::read(file.all()) | pp::batched({.rows = 32, .last = pp::last_batch::pad}))
                      .build(gpu::device::parse(name), small);
  for (int pass = 0; pass < 2; ++pass)
    for (const pp::batch& batch : pipeline.epochs(0, 3)) {
      BOOST_REQUIRE_EQUAL(batch.rows(), 32u);
      BOOST_REQUIRE_EQUAL(batch.valid_rows(), batch.index() == 2 ? 6u : 32u);
      std::vector<std::uint8_t> mask(32);
      gpu::copy(batch.stream(), mask.data(), batch.mask(), 32);
      const auto wide = penstock::test::fetch<float>(batch, "wide");
      const auto image = penstock::test::fetch<float>(batch, "image");
      for (std::size_t row = 0; row < 32; ++row) {
        BOOST_TEST(mask[row] == (row < batch.valid_rows() ? 1 : 0));
        if (row < batch.valid_rows()) continue;
        BOOST_TEST(wide[row * 33 + 32] == 0);
        BOOST_TEST(image[row * 12] == 0);
      }
    }
}

BOOST_DATA_TEST_CASE(the_last_batch_can_be_dropped, every_device, name) {
  const small_file file(70, 16);
  auto pipeline = (pp::read(file.plain()) | pp::batched({.rows = 32, .last = pp::last_batch::drop}))
                      .build(gpu::device::parse(name), small);
  BOOST_TEST(penstock::test::consume(pipeline, 0, 2).size() == 128u);
}

BOOST_DATA_TEST_CASE(batches_can_be_held_up_to_the_planned_number, every_device, name) {
  const small_file file(3000, 64);
  auto pipeline =
      (pp::read(file.plain()) | pp::batched({.rows = 32, .held = 3})).build(gpu::device::parse(name), small);
  std::deque<pp::batch> held;
  std::vector<std::uint64_t> rows;
  for (pp::batch& batch : pipeline.epochs(0, 1)) {
    held.push_back(std::move(batch));
    if (held.size() <= 3) continue;
    penstock::test::check(held.front(), rows);  // still its own values, three batches later
    held.pop_front();
  }
  for (const pp::batch& batch : held) penstock::test::check(batch, rows);
  BOOST_TEST(rows.size() == 3000u);
}

BOOST_DATA_TEST_CASE(batches_may_be_released_in_any_order, every_device, name) {
  const small_file file(2000, 64);
  auto pipeline =
      (pp::read(file.plain()) | pp::batched({.rows = 32, .held = 2})).build(gpu::device::parse(name), small);
  std::vector<std::uint64_t> rows;
  auto range = pipeline.epochs(0, 1);
  for (;;) {
    pp::batch first = range.next(), second = range.next();
    if (first) penstock::test::check(first, rows);
    if (!second) break;
    penstock::test::check(second, rows);
    second.release();
    first.release();
  }
  BOOST_TEST(rows.size() == 2000u);
}

namespace {

/// Counts the marks in a stream.
struct count_of_marks final : penstock::fault_injector {
  penstock::fault before(penstock::fault_site, std::string_view what, std::uint64_t, std::size_t) override {
    if (what == "cudaEventRecord") ++marks;
    return {};
  }
  std::atomic<int> marks{0};
};

}  // namespace

BOOST_DATA_TEST_CASE(a_stream_may_end_once_its_batch_is_back_before_or_after_older_ones, every_device, name) {
  const small_file file(2000, 64);
  const auto device = gpu::device::parse(name);
  auto pipeline = (pp::read(file.plain()) | pp::batched({.rows = 32, .held = 2})).build(device, small);
  for (const bool leaves_early : {false, true}) {
    const auto seen = std::make_shared<count_of_marks>();
    std::optional<gpu::stream> other(std::in_place, device, false, seen);
    auto range = pipeline.epochs(0, 1);
    pp::batch older = range.next(), younger = range.next();
    younger.used_on(*other);
    younger.release();
    BOOST_TEST(seen->marks == 1);
    other.reset();
    if (leaves_early) {
      older.release();
      break;
    }
    std::vector<std::uint64_t> rows;
    penstock::test::check(older, rows);
    older.release();
    for (pp::batch next = range.next(); next; next = range.next()) penstock::test::check(next, rows);
    BOOST_TEST(rows.size() == 2000u - 32);
    BOOST_TEST(seen->marks == 1);
  }
  BOOST_TEST(penstock::test::consume(pipeline, 1, 1).size() == 2000u);
}

namespace {

/// Counts the waits of streams for each other, and lets one fail.
struct count_of_waits final : penstock::fault_injector {
  penstock::fault before(penstock::fault_site, std::string_view what, std::uint64_t, std::size_t) override {
    if (what != "cudaStreamWaitEvent") return {};
    ++waits;
    return {.error = fails.exchange(false) ? 719 : 0};  // cudaErrorLaunchFailure
  }
  std::atomic<int> waits{0};
  std::atomic<bool> fails{false};
};

}  // namespace

BOOST_AUTO_TEST_CASE(what_a_run_waits_for_is_waited_for_again_where_it_could_not_begin) {
  const small_file file(1000, 64);
  const auto seen = std::make_shared<count_of_waits>();
  auto pipeline = (pp::read(file.all()) | penstock::fault_seam(seen) | pp::batched({.rows = 32, .held = 2}))
                      .build(gpu::device::host(), small);
  const gpu::stream other(gpu::device::host());
  pp::batch first, second;
  {
    auto range = pipeline.epochs(0, 1);
    first = range.next(), second = range.next();
    first.used_on(other), second.used_on(other);
  }
  first.release(), second.release();  // late: each leaves a mark in two streams
  seen->fails = true;
  BOOST_CHECK_THROW(pipeline.epochs(1, 1), gpu::error);
  BOOST_TEST(!seen->fails);
  seen->waits = 0;
  auto range = pipeline.epochs(1, 1);
  BOOST_TEST(seen->waits >= 8);  // of the two streams that fill the rings
  BOOST_TEST(range.next().valid_rows() == 32u);
}

BOOST_AUTO_TEST_CASE(one_batch_too_many_is_an_error_that_says_so) {
  const small_file file(1000, 64);
  auto pipeline = (pp::read(file.plain()) | pp::batched({.rows = 32, .held = 1})).build(gpu::device::host(), small);
  auto range = pipeline.epochs(0, 1);
  const pp::batch first = range.next(), second = range.next();
  BOOST_CHECK_EXCEPTION(range.next(), pp::error, [](const auto& e) {
    return std::string(e.what()).find("batch 0 of epoch 0 is still held, 2 batches later") != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(a_batch_that_is_never_given_back_is_an_error_and_no_hang) {
  const small_file file(1000, 64);
  auto pipeline = (pp::read(file.plain()) | pp::batched({.rows = 32, .held = 1})).build(gpu::device::host(), small);
  auto range = pipeline.epochs(0, 1);
  const pp::batch kept = range.next();
  range.next().release();
  BOOST_CHECK_EXCEPTION(range.next(), pp::error, [](const auto& e) {
    return std::string(e.what()).find("batch 0 of epoch 0 is still held, 2 batches later") != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(a_batch_that_outlives_its_run_is_harmless) {
  const small_file file(1000, 64);
  pp::batch kept;
  {
    auto pipeline = (pp::read(file.plain()) | pp::batched({.rows = 32})).build(gpu::device::host(), small);
    for (pp::batch& batch : pipeline.epochs(0, 1)) {
      kept = std::move(batch);
      break;
    }
    BOOST_CHECK_THROW(pipeline.epochs(0, 1), pp::error);  // it is still held
  }
  kept.release();
  BOOST_TEST(!kept);
}

BOOST_DATA_TEST_CASE(a_batch_released_after_its_run_makes_room_for_the_next_run, every_device, name) {
  const small_file file(1000, 64);
  const auto device = gpu::device::parse(name);
  auto pipeline = (pp::read(file.plain()) | pp::batched({.rows = 32})).build(device, small);
  const gpu::stream other(device);
  pp::batch kept;
  for (pp::batch& batch : pipeline.epochs(0, 1)) {
    kept = std::move(batch);
    kept.used_on(other);
    break;
  }
  kept.release();
  BOOST_TEST(penstock::test::consume(pipeline, 1, 1).size() == 1000u);
}

BOOST_AUTO_TEST_CASE(fields_are_asked_for_by_name_and_type) {
  const small_file file(100);
  auto pipeline = (pp::read(file.all()) | pp::batched({.rows = 32})).build(gpu::device::host(), small);
  auto range = pipeline.epochs(0, 1);
  const pp::batch batch = range.next();
  BOOST_CHECK_EXCEPTION(batch.view("labels"), std::invalid_argument, [](const auto& e) {
    return std::string(e.what()).find("wide, label, image") != std::string::npos;
  });
  BOOST_CHECK_EXCEPTION(batch.field<float>("label"), std::invalid_argument, [](const auto& e) {
    return std::string(e.what()).find("int32, not float32") != std::string::npos;
  });
  BOOST_TEST(*batch.view("image").row_shape == (std::vector<std::uint64_t>{3, 4}));
  BOOST_TEST(batch.fields().size() == 3u);
}

BOOST_DATA_TEST_CASE(a_batch_can_be_used_on_another_stream, every_device, name) {
  const small_file file(5000, 64);
  const auto device = gpu::device::parse(name);
  auto pipeline = (pp::read(file.plain()) | pp::batched({.rows = 64})).build(device, small);
  const gpu::stream mine(device), other(device);
  std::vector<std::int32_t> labels(5000);
  std::size_t at = 0;
  for (pp::batch& batch : pipeline.epochs(0, 1, {.stream = mine.ref()})) {
    BOOST_TEST((batch.stream() == mine.ref()));
    batch.used_on(other);
    gpu::copy(other, labels.data() + at, batch.field<std::int32_t>("label"), batch.rows() * 4);
    at += batch.rows();
  }
  other.synchronize();
  for (std::size_t i = 0; i < labels.size(); ++i) BOOST_REQUIRE_EQUAL(labels[i], static_cast<std::int32_t>(i));
}

BOOST_DATA_TEST_CASE(a_stream_of_another_device_is_refused_and_the_run_goes_on, every_device, name) {
  const small_file file(1000, 64);
  auto pipeline = (pp::read(file.plain()) | pp::batched({.rows = 64})).build(gpu::device::parse(name), small);
  const gpu::stream_ref elsewhere(std::bit_cast<gpu::device>(7), nullptr);  // cuda:7, which need not be there
  const auto names_both = [&](const std::invalid_argument& e) {
    return std::string(e.what()).find("stream is on cuda:7, the batch on " + std::string(name)) != std::string::npos;
  };
  std::vector<std::uint64_t> rows;
  for (pp::batch& batch : pipeline.epochs(0, 1)) {
    penstock::test::check(batch, rows);
    BOOST_CHECK_EXCEPTION(batch.used_on(elsewhere), std::invalid_argument, names_both);
  }
  BOOST_TEST(rows.size() == 1000u);
  BOOST_TEST(penstock::test::consume(pipeline, 1, 1).size() == 1000u);
}

BOOST_DATA_TEST_CASE(rows_that_were_given_back_are_poisoned_on_request, every_device, name) {
  const small_file file(1000, 64);
  const auto device = gpu::device::parse(name);
  auto pipeline = (pp::read(file.plain()) | pp::batched({.rows = 32, .poisoned = true})).build(device, small);
  std::vector<std::uint64_t> rows;
  auto range = pipeline.epochs(0, 1);
  const std::int32_t* late = nullptr;
  const auto value_at = [&](const std::int32_t* at) {
    const gpu::stream mine(device);
    std::int32_t value = 0;
    gpu::copy(mine, &value, at, sizeof value);
    mine.synchronize();
    return value;
  };
  for (std::uint64_t batch = 0; batch < 31; ++batch) {
    pp::batch now = range.next();
    penstock::test::check(now, rows);  // what is lent is whole
    late = now.field<std::int32_t>("label");
    BOOST_REQUIRE_EQUAL(value_at(late), static_cast<std::int32_t>(batch * 32));
    const gpu::stream_ref stream = now.stream();
    now.release();
    stream.synchronize();
    BOOST_TEST(value_at(late) != static_cast<std::int32_t>(batch * 32));  // poisoned at once, or a later row already
    BOOST_CHECK_EXCEPTION(now.view("label"), std::invalid_argument, [&](const auto& e) {
      return std::string(e.what()).find("field 'label' of batch " + std::to_string(batch)) != std::string::npos;
    });
  }
  pp::batch last = range.next();  // the run's last batch, which nothing overwrites later
  late = last.field<std::int32_t>("label");
  const gpu::stream_ref stream = last.stream();
  last.release();
  stream.synchronize();
  BOOST_TEST(value_at(late) == -1);
}

BOOST_AUTO_TEST_CASE(slots_whose_rows_are_out_are_poisoned_on_request) {
  const small_file file(100, 64);
  const float* slot = nullptr;  // of the only block
  std::size_t values = 0;
  auto pipeline = (pp::read(file.plain()) |
                   pp::transform_host({.name = "keeps a pointer"},
                                      [&](const pp::block& block) {
                                        slot = block.input<float>("wide");
                                        values = block.rows() * 33;
                                        BOOST_REQUIRE_EQUAL(slot[1], 1);
                                      }) |
                   pp::batched({.rows = 100, .poisoned = true}))
                      .build(gpu::device::host(), small);
  std::vector<std::uint64_t> rows;
  auto range = pipeline.epochs(0, 1);
  const pp::batch batch = range.next();
  penstock::test::check(batch, rows);  // what came out of it is whole
  BOOST_REQUIRE_EQUAL(values, 3300u);
  BOOST_TEST(std::all_of(slot, slot + values, [](float value) { return std::isnan(value); }));
}

BOOST_AUTO_TEST_CASE(any_use_of_a_batch_after_its_time_names_it) {
  const small_file file(100);
  auto pipeline = (pp::read(file.plain()) | pp::batched({.rows = 32})).build(gpu::device::host(), small);
  auto range = pipeline.epochs(5, 1);
  range.next().release();
  pp::batch late = range.next();
  late.release();
  const auto names_it = [](const std::invalid_argument& e) {
    return std::string(e.what()).find("of batch 1 of epoch 5 is asked for after") != std::string::npos;
  };
  BOOST_CHECK_EXCEPTION(late.view("wide"), std::invalid_argument, names_it);
  BOOST_CHECK_EXCEPTION(late.field<float>("wide"), std::invalid_argument, names_it);
  BOOST_CHECK_EXCEPTION(late.fields(), std::invalid_argument, names_it);
  BOOST_CHECK_EXCEPTION(late.row_ids(), std::invalid_argument, names_it);
  BOOST_CHECK_EXCEPTION(late.row_identities("wide"), std::invalid_argument, names_it);
  BOOST_CHECK_EXCEPTION(late.used_on({}), std::invalid_argument, names_it);
  pp::batch moved = range.next();
  const pp::batch other = std::move(moved);
  BOOST_CHECK_THROW(moved.view("wide"), std::invalid_argument);
  BOOST_TEST(other.fields().size() == 2u);
  BOOST_TEST(pp::batch().fields().empty());
}

BOOST_AUTO_TEST_CASE(a_batch_whose_run_has_ended_is_named_where_another_stream_is_to_use_it) {
  const small_file file(100);
  pp::batch kept;
  {
    auto pipeline = (pp::read(file.plain()) | pp::batched({.rows = 32})).build(gpu::device::host(), small);
    auto range = pipeline.epochs(5, 1);
    range.next().release();
    kept = range.next();
  }
  BOOST_CHECK_EXCEPTION(kept.used_on(gpu::stream_ref()), std::invalid_argument, [](const std::invalid_argument& e) {
    return std::string(e.what()).find("batch 1 of epoch 5") == 0 && std::string(e.what()).ends_with("has ended");
  });
}

BOOST_AUTO_TEST_SUITE_END()
