// What a report calls the stages of those who call theirs as Penstock does its own, or as each other.
#include "small_file.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
using namespace penstock::literals;
using penstock::test::small_file;

namespace {

constexpr gpu::budget small{.device_bytes = 8_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB};

/// One epoch with a host transform of that name, which takes far longer than all else, before one named "crop".
pp::pipeline_report report_of(const std::string& name) {
  const small_file file(2000, 64);
  auto pipeline = (pp::read(file.all()) |
                   pp::transform_host({.name = name},
                                      [](const auto&) { std::this_thread::sleep_for(std::chrono::milliseconds(4)); }) |
                   pp::transform_host({.name = "crop"}, [](const auto&) {}) |
                   pp::transport({.block_bytes = 8192, .slots = 40, .threads = 2}) | pp::batched({.rows = 100}))
                      .build(gpu::device::host(), small);
  for (const pp::batch& batch : pipeline.epochs(0, 1)) static_cast<void>(batch);
  return pipeline.report();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(names_of_stages, *boost::unit_test::timeout(120))

BOOST_AUTO_TEST_CASE(a_transform_that_is_called_as_a_stage_of_penstock_s_is_charged_apart_from_it) {
  for (const std::string name : {"read", "decode", "libhdf5", "copy", "gather", "order", "slots", "consumer",
                                 "beginning", "handing over", "device thread"}) {
    const pp::pipeline_report report = report_of(name);
    BOOST_TEST(report.bottleneck.starts_with(name + " (transform): "), name << ": " << report.bottleneck);
    BOOST_TEST(std::ranges::count(report.stages, name + " (transform)", &pp::stage_report::name) == 1);
  }
}

BOOST_AUTO_TEST_CASE(transforms_of_one_name_are_numbered) {
  const pp::pipeline_report report = report_of("crop");
  BOOST_TEST(report.bottleneck.starts_with("crop: "), report.bottleneck);
  BOOST_TEST(report.stages.at(1).name == "crop");
  BOOST_TEST(report.stages.at(2).name == "crop 2");
}

BOOST_AUTO_TEST_CASE(rows_that_need_only_reading_wait_for_no_gather) {
  const small_file file(2000, 64);
  auto pipeline = (pp::read(file.plain()) | pp::batched({.rows = 100})).build(gpu::device::host(), small);
  for (const pp::batch& batch : pipeline.epochs(0, 3)) static_cast<void>(batch);
  const pp::pipeline_report report = pipeline.report();
  BOOST_TEST(std::ranges::count(report.consumer_waits, "gather", &pp::time_charge::stage) == 0);
  double charged = 0;
  for (const pp::time_charge& wait : report.consumer_waits) charged += wait.seconds;
  BOOST_TEST(charged == report.consumer_wait_seconds, boost::test_tools::tolerance(1e-6));
}

BOOST_AUTO_TEST_SUITE_END()
