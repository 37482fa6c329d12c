// What a profiler of NVIDIA's sees of a pipeline's work: nvtx_counter.cpp takes its place, in this whole program.

#include "small_file.hpp"

#include <penstock/config.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
namespace data = boost::unit_test::data;
using namespace penstock::literals;
using penstock::test::small_file;

namespace {

const auto every_device = data::make(penstock::test::devices());

#if PENSTOCK_HAS_CUDA
constexpr const char* variable = "NVTX_INJECTION64_PATH";

/// Before the first range, which loads it; not where a profiler is at work.
[[maybe_unused]] const int asked_for = ::setenv(variable, PENSTOCK_NVTX_COUNTER, 0);

std::string why_not() {
  return ::getenv(variable) == std::string(PENSTOCK_NVTX_COUNTER) ? "" : "a profiler takes the NVTX ranges";
}

using count_of = std::uint64_t (*)(const char*);
count_of counter(const char* name) {
  static void* const library = ::dlopen(PENSTOCK_NVTX_COUNTER, RTLD_NOW);
  return library ? reinterpret_cast<count_of>(::dlsym(library, name)) : nullptr;
}
#else
std::string why_not() { return "a build without CUDA has no NVTX ranges"; }

using count_of = std::uint64_t (*)(const char*);
count_of counter(const char*) { return nullptr; }
#endif

boost::test_tools::assertion_result ranges_are_counted(boost::unit_test::test_unit_id id) {
  const std::string why = why_not();
  if (why.empty()) return true;
  boost::test_tools::assertion_result skipped(false);
  skipped.message() << why;
  std::cout << "skipped: " << boost::unit_test::framework::get(id, boost::unit_test::TUT_ANY).full_name() << ": " << why
            << std::endl;
  return skipped;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ranges, *boost::unit_test::precondition(ranges_are_counted))

// A range for each block that is read and each call of a transform, which are counted here, and all of them end.
BOOST_DATA_TEST_CASE(profilers_see_a_range_for_each_piece_of_work, every_device, name) {
  const count_of pushed = counter("penstock_nvtx_pushed"), popped = counter("penstock_nvtx_popped");
  BOOST_REQUIRE(pushed != nullptr);
  BOOST_REQUIRE(popped != nullptr);
  const small_file file(2000, 64);
  std::atomic<std::uint64_t> on_host{0}, on_device{0};
  const std::string device_work = "device work on " + name, host_work = "host work on " + name;
  std::map<std::string, std::uint64_t> before;
  for (const char* one : {"read", "copy", "gather", "wait for rows"}) before[one] = pushed(one);
  pp::pipeline_report report;
  {
    auto pipeline = (pp::read(file.all(), pp::shuffled{.seed = 1, .run_rows = 64, .pool_rows = 512}) |
                     pp::transform_host({.name = host_work, .concurrency = 2}, [&](const pp::block&) { ++on_host; }) |
                     pp::transform_device({.name = device_work}, [&](const pp::block&) { ++on_device; }) |
                     pp::transport({.block_bytes = 8192, .slots = 40, .threads = 2}) | pp::batched({.rows = 100}))
                        .build(gpu::device::parse(name), {.device_bytes = 8_MiB, .pinned_bytes = 4_MiB});
    for (const pp::batch& batch : pipeline.epochs(0, 2)) BOOST_REQUIRE(batch.valid_rows() > 0);
    report = pipeline.report();
  }
  const auto seen = [&](const std::string& one) { return pushed(one.c_str()) - before[one]; };
  BOOST_TEST(on_host > 10u);
  BOOST_TEST(on_device > 10u);
  BOOST_TEST(seen(host_work) == on_host);
  BOOST_TEST(seen("read") == on_host);  // each block goes through both
  BOOST_TEST(seen(device_work) == on_device);
  BOOST_TEST(seen("gather") == on_device);  // as do the pieces of which batches are made
  BOOST_TEST(seen("wait for rows") > 0u);   // the first batch's, at least
  if (name == "host")
    BOOST_TEST(seen("copy") == 0u);
  else
    BOOST_TEST(seen("copy") > 0u);
  for (const std::string& one : {std::string("read"), std::string("copy"), std::string("gather"),
                                 std::string("wait for rows"), host_work, device_work})
    BOOST_TEST(popped(one.c_str()) == pushed(one.c_str()), one);
  BOOST_TEST(popped("popped and never pushed") == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
