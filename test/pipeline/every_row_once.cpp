#include "order_rows.hpp"
#include "small_file.hpp"

#include <random>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
using namespace penstock::literals;
using penstock::test::consume;
using penstock::test::is_every_row_once;
using penstock::test::small_file;

BOOST_AUTO_TEST_SUITE(every_row_once)

BOOST_AUTO_TEST_CASE(orders_that_promise_it_keep_it_for_any_shape_pool_run_batch_and_ranks) {
  const gpu::budget enough{.device_bytes = 16_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB};
  std::mt19937_64 random(6);
  const auto up_to = [&](std::uint64_t most) { return 1 + random() % most; };
  for (int trial = 0; trial < 12; ++trial) {
    const std::uint64_t rows = up_to(900), run = up_to(60), pool = run + up_to(300), batch = up_to(130),
                        ranks = up_to(3), shards = ranks * up_to(3), block_bytes = up_to(20'000);
    const small_file file(rows, random() % 2 * up_to(100), 1);
    for (const pp::order_options& how : std::vector<pp::order_options>{
             pp::sequential{}, pp::shuffled{.seed = random(), .run_rows = run, .pool_rows = pool},
             pp::random{random()}}) {
      std::vector<std::uint64_t> seen;
      std::uint64_t batches = 0;
      for (std::uint64_t rank = 0; rank < ranks; ++rank) {
        auto pipeline = (pp::read(file.all(), how) | pp::batched({.rows = batch, .last = pp::last_batch::pad}) |
                         pp::sharded({.shards = shards, .rank = rank, .ranks = ranks}) |
                         pp::transport({.block_bytes = block_bytes, .threads = up_to(3)}))
                            .build(gpu::device::host(), enough);
        const auto own = consume(pipeline, static_cast<std::uint64_t>(trial), 1);
        seen.insert(seen.end(), own.begin(), own.end());
        if (rank > 0) BOOST_REQUIRE_EQUAL(pipeline.batches_per_epoch(), batches);
        batches = pipeline.batches_per_epoch();
      }
      BOOST_REQUIRE_MESSAGE(is_every_row_once(seen, rows), "rows " << rows << ", run " << run << ", pool " << pool
                                                                   << ", batch " << batch << ", shards " << shards
                                                                   << ", ranks " << ranks);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
