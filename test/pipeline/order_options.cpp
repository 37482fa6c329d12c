#include <penstock/pipeline/order_options.hpp>

#include "small_file.hpp"

#include <string>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
using namespace penstock::literals;
using penstock::test::small_file;

BOOST_AUTO_TEST_SUITE(order_options)

// Rows of 33 floats, 12 bytes and one int32 are 148 bytes; the largest chunk has 64 rows (the image's 42, labels lie
// one by one). 256 KiB are 1771.2 rows, which takes 28 chunks: runs of 1792 rows. 32 of them are more than all 5000
// rows.
BOOST_AUTO_TEST_CASE(fields_with_other_chunks_share_runs_of_whole_chunks_of_the_largest) {
  const small_file file(5000, 64, 1);
  const auto opened = pp::read(file.all(), pp::shuffled{.seed = 1}).open();
  BOOST_TEST(opened.row_order().run_rows() == 1792u);
  BOOST_TEST(opened.row_order().window_rows() == 5000u);
}

BOOST_AUTO_TEST_CASE(a_pool_that_the_budget_cannot_hold_is_refused_and_not_made_smaller) {
  const small_file file(5000, 64);
  const gpu::budget little{.device_bytes = 256_KiB, .pinned_bytes = 1_MiB, .host_bytes = 64_MiB};
  const auto plan = [&](const pp::shuffled& how) {
    return pp::read(file.all(), how).open().plan(gpu::device::host(), little);
  };
  // 4000 rows of 148 bytes are 578 KiB.
  BOOST_CHECK_EXCEPTION(plan({.seed = 1, .run_rows = 10, .pool_rows = 4000}), gpu::budget_error, [](const auto& e) {
    return std::string(e.what()).find("pipeline: pool") != std::string::npos;
  });
  BOOST_CHECK_THROW(plan({.seed = 1, .run_rows = 4000}), gpu::budget_error);
  BOOST_TEST(plan({.seed = 1, .run_rows = 10, .pool_rows = 200}).order.find("pool of 200 rows") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
