#include "small_file.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <penstock/gpu/memory.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
namespace data = boost::unit_test::data;
using namespace penstock::literals;
using penstock::type;
using penstock::test::small_file;

namespace {
const auto every_device = data::make(penstock::test::devices());
const gpu::budget small{.device_bytes = 8_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB};
const auto orders = data::make({false, true});
pp::order_options order(bool shuffle) {
  return shuffle ? pp::order_options(pp::shuffled{.seed = 3, .run_rows = 16, .pool_rows = 300}) : pp::sequential{};
}
}  // namespace

BOOST_AUTO_TEST_SUITE(transforms)

BOOST_DATA_TEST_CASE(a_host_transform_puts_out_declared_fields_from_rows_seed_and_epoch, every_device* orders, name,
                     shuffle) {
  const small_file file(1000, 64);
  auto pipeline = (pp::read(file.plain(), order(shuffle)) |
                   pp::transform_host({.name = "sum", .concurrency = 2, .outputs = {{"sum", type::float64, {2}}}},
                                      [](const pp::block& block) {
                                        const float* wide = block.input<float>("wide");
                                        double* sum = block.output<double>("sum");
                                        for (std::size_t row = 0; row < block.rows(); ++row) {
                                          sum[2 * row] = 0;
                                          for (int column = 0; column < 33; ++column)
                                            sum[2 * row] += wide[row * 33 + column];
                                          sum[2 * row + 1] =
                                              static_cast<double>(block.row_ids()[row] + 1000 * block.epoch());
                                        }
                                      }) |
                   pp::batched({.rows = 40}))
                      .build(gpu::device::parse(name), small);
  std::size_t rows = 0;
  for (const pp::batch& batch : pipeline.epochs(2, 1)) {
    const auto sum = penstock::test::fetch<double>(batch, "sum");
    const auto ids = batch.row_ids();
    for (std::size_t i = 0; i < ids.size(); ++i, ++rows) {
      const double id = static_cast<double>(ids[i]);
      BOOST_REQUIRE_EQUAL(sum[2 * i], 33 * (id * 33) + 33 * 16);  // of id * 33 + 0 to 32
      BOOST_REQUIRE_EQUAL(sum[2 * i + 1], id + 2000);
    }
    std::vector<std::uint64_t> checked;
    penstock::test::check(batch, checked);
  }
  BOOST_TEST(rows == 1000u);
}

BOOST_AUTO_TEST_CASE(a_host_transform_without_outputs_changes_fields_in_place) {
  const small_file file(500, 64);
  auto pipeline = (pp::read(file.plain()) |
                   pp::transform_host({.name = "negate"},
                                      [](const pp::block& block) {
                                        std::int32_t* label = block.output<std::int32_t>("label");
                                        for (std::size_t row = 0; row < block.rows(); ++row) label[row] = -label[row];
                                      }) |
                   pp::batched({.rows = 50}))
                      .build(gpu::device::host(), small);
  std::int32_t row = 0;
  for (const pp::batch& batch : pipeline.epochs(0, 1))
    for (const std::int32_t label : penstock::test::fetch<std::int32_t>(batch, "label"))
      BOOST_REQUIRE_EQUAL(label, -row++);
  BOOST_TEST(row == 500);
}

BOOST_DATA_TEST_CASE(a_device_transform_works_on_its_stream_before_the_batch_is_seen, every_device* orders, name,
                     shuffle) {
  const small_file file(1000, 64);
  auto pipeline =
      (pp::read(file.plain(), order(shuffle)) |
       pp::transform_device(
           {.name = "copy the number", .outputs = {{"number", type::uint64, {}}, {"label", type::int32, {2}}}},
           [](const pp::block& block) {
             gpu::copy(block.stream(), block.output<std::uint64_t>("number"), block.row_ids(), block.rows() * 8);
             gpu::fill(block.stream(), block.output<std::int32_t>("label"), 1, block.rows() * 8);
           }) |
       pp::batched({.rows = 40}))
          .build(gpu::device::parse(name), small);
  std::size_t rows = 0;
  for (const pp::batch& batch : pipeline.epochs(0, 2)) {
    std::vector<std::uint64_t> number(batch.rows());
    gpu::copy(batch.stream(), number.data(), batch.field<std::uint64_t>("number"), batch.rows() * 8);
    const auto label = penstock::test::fetch<std::int32_t>(batch, "label");
    BOOST_TEST(number == batch.row_ids());
    for (const std::int32_t value : label) BOOST_REQUIRE_EQUAL(value, 0x01010101);
    rows += batch.valid_rows();
  }
  BOOST_TEST(rows == 2000u);
}

// Also one that does nothing but wait. oneTBB has no more workers than there are processors.
BOOST_AUTO_TEST_CASE(no_more_blocks_are_transformed_at_once_than_the_report_and_the_plan_say) {
  const small_file file(4000, 64);
  const std::size_t processors = std::thread::hardware_concurrency(), asked = 4 * processors;
  std::atomic<std::size_t> inside{0}, most{0};
  const auto wait = [&](const pp::block&) {
    const std::size_t now = ++inside;
    for (std::size_t before = most; before < now && !most.compare_exchange_weak(before, now);) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    --inside;
  };
  auto pipeline =
      (pp::read(file.plain()) | pp::transform_host({.name = "wait", .concurrency = asked}, wait) |
       pp::transport({.block_bytes = 8192, .slots = 2 * asked, .threads = asked}) | pp::batched({.rows = 40}))
          .build(gpu::device::host(), {.device_bytes = 64_MiB, .pinned_bytes = 64_MiB});
  penstock::test::consume(pipeline, 0, 1);
  const pp::pipeline_report report = pipeline.report();
  const pp::stage_report& stage = report.stages.at(1);
  BOOST_TEST(stage.name == "wait");
  BOOST_TEST(stage.workers <= processors);
  BOOST_TEST(most <= stage.workers);
  BOOST_TEST(stage.mean_at_work <= static_cast<double>(stage.workers) * 1.001);
  const std::string said = "wait: " + std::to_string(stage.workers) + " of the " + std::to_string(asked) + " blocks";
  for (const auto& choices : {pipeline.plan().choices, report.choices}) {
    const auto starts = [&](const std::string& choice) { return choice.starts_with(said); };
    BOOST_TEST(std::count_if(choices.begin(), choices.end(), starts) == 1, choices.at(choices.size() - 2));
    BOOST_TEST(choices.back().find("readers") != std::string::npos);
  }
  BOOST_TEST(report.bottleneck.find("a higher concurrency") == std::string::npos, report.bottleneck);
}

BOOST_AUTO_TEST_CASE(a_transform_that_asks_for_a_field_that_is_not_there_is_told_what_there_is) {
  const small_file file(100);
  auto pipeline = (pp::read(file.plain()) |
                   pp::transform_host({.name = "wrong"}, [](const pp::block& block) { block.input<float>("narrow"); }) |
                   pp::batched({.rows = 50}))
                      .build(gpu::device::host(), small);
  BOOST_CHECK_EXCEPTION(penstock::test::consume(pipeline, 0, 1), pp::error, [](const auto& e) {
    return std::string(e.what()).find("it has wide, label") != std::string::npos;
  });
}

BOOST_AUTO_TEST_SUITE_END()
