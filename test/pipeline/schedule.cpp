#include "schedule.hpp"

#include <boost/test/unit_test.hpp>

#include <random>

namespace pp = penstock::pipeline;

namespace {

struct walked {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> positions;  // epoch, position in it
  std::uint64_t blocks_done = 0;
};

/// Walks a run piece by piece, each cut by a limit that is drawn, and checks what pieces promise.
walked walk(const pp::schedule& plan, const pp::schedule::sizes& sizes, std::mt19937_64& random) {
  walked out;
  for (std::uint64_t at = 0; at < plan.end();) {
    const std::uint64_t limit = std::min(plan.end(), at + 1 + random() % (2 * sizes.ring_rows));
    const pp::piece p = plan.piece_at(at, limit);
    BOOST_REQUIRE(p.rows > 0 && at + p.rows <= limit);
    BOOST_REQUIRE_EQUAL(p.ring_first, at);
    BOOST_REQUIRE(at % sizes.ring_rows + p.rows <= sizes.ring_rows);
    BOOST_REQUIRE(p.blocks_needed <= plan.blocks());
    BOOST_REQUIRE(p.blocks_done >= out.blocks_done);
    out.blocks_done = p.blocks_done;
    if (!p.padding)
      for (std::uint64_t i = 0; i < p.rows; ++i) out.positions.emplace_back(p.epoch, p.first + i);
    at += p.rows;
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(schedule)

BOOST_AUTO_TEST_CASE(epochs_from_which_numbers_would_go_round_are_refused) {
  const pp::order order(pp::sequential{}, {.rows = 10, .row_bytes = 4});
  const pp::schedule::sizes sizes{.block_rows = 4, .batch_rows = 4, .ring_rows = 8};
  const std::uint64_t last = std::uint64_t{1} << 62, none = 0;
  for (const std::uint64_t first : {last + 1, ~none}) {
    const auto names = [&](const auto& e) {
      return std::string(e.what()).find(std::to_string(first)) != std::string::npos;
    };
    BOOST_CHECK_EXCEPTION(pp::schedule(order, sizes, first, 2, 0), std::invalid_argument, names);
  }
  // As many epochs as anybody may ask for, and still none is numbered beyond 64 bits.
  const pp::schedule plan(order, sizes, last, ~none, 0);
  const std::uint64_t end = plan.batch(plan.batches() - 1).epoch;
  BOOST_TEST(end > last);
  BOOST_TEST(plan.block(plan.blocks() - 1).epoch == end);
}

BOOST_AUTO_TEST_CASE(every_position_comes_out_once_in_order_from_blocks_that_hold_it) {
  std::mt19937_64 random(2);
  for (int trial = 0; trial < 400; ++trial) {
    const std::uint64_t rows = 1 + random() % 500, epochs = 1 + random() % 3;
    const bool shuffled = random() % 2;
    const std::uint64_t run = 1 + random() % 20, pool = run + random() % 100;
    const pp::order order(
        shuffled ? pp::order_options(pp::shuffled{random(), run, pool}) : pp::order_options(pp::sequential{}),
        {.rows = rows, .row_bytes = 4});
    pp::schedule::sizes sizes;
    sizes.block_rows = 1 + random() % 60;
    sizes.batch_rows = 1 + random() % 40;
    sizes.ring_rows = sizes.batch_rows * (2 + random() % 4);
    sizes.last = static_cast<pp::last_batch>(random() % 3);
    sizes.piece_rows = random() % 2 ? 0 : 1 + random() % 200;
    const std::uint64_t per_epoch = pp::schedule::batches_per_epoch(order, sizes.batch_rows, sizes.last);
    const std::uint64_t skip = per_epoch ? random() % per_epoch : 0;
    const pp::schedule plan(order, sizes, 5, epochs, skip);
    const auto out = walk(plan, sizes, random);

    const std::uint64_t kept = sizes.last == pp::last_batch::drop ? rows / sizes.batch_rows * sizes.batch_rows : rows;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> expected;
    for (std::uint64_t e = 0; e < epochs; ++e)
      for (std::uint64_t p = e == 0 ? skip * sizes.batch_rows : 0; p < kept; ++p) expected.emplace_back(5 + e, p);
    BOOST_REQUIRE(out.positions == expected);
    BOOST_REQUIRE_EQUAL(out.blocks_done, plan.blocks());

    // Blocks cover what pieces take from them.
    for (std::uint64_t at = 0; at < plan.end();) {
      const pp::piece p = plan.piece_at(at, plan.end());
      if (!p.padding && !shuffled) {
        const pp::block_place block = plan.block(p.first_block);
        BOOST_REQUIRE(block.epoch == p.epoch && block.first == p.window_first &&
                      p.first + p.rows <= block.first + block.rows);
        BOOST_REQUIRE_EQUAL(plan.ring_position(block) + p.first - block.first, p.ring_first);
      } else if (!p.padding) {
        std::uint64_t from = p.window_first;
        for (std::uint64_t b = p.first_block; b < p.blocks_needed; ++b) {
          const pp::block_place block = plan.block(b);
          BOOST_REQUIRE(block.epoch == p.epoch && block.window == p.window && block.first == from);
          from += block.rows;
        }
        BOOST_REQUIRE_EQUAL(from, std::min((p.window + 1) * order.window_rows(), rows));
      }
      at += p.rows;
    }
  }
}

BOOST_AUTO_TEST_CASE(batches_follow_the_policy_of_the_last_one) {
  const pp::order order(pp::sequential{}, {.rows = 10, .row_bytes = 4});
  const auto last_of = [&](pp::last_batch policy) {
    const pp::schedule plan(order, {4, 4, 16, policy}, 0, 1, 0);
    return std::pair(plan.batches(), plan.batch(plan.batches() - 1));
  };
  const auto [kept, keep] = last_of(pp::last_batch::keep);
  BOOST_TEST(kept == 3u);
  BOOST_TEST(keep.rows == 2u);
  const auto [padded, pad] = last_of(pp::last_batch::pad);
  BOOST_TEST(padded == 3u);
  BOOST_TEST(pad.rows == 4u);
  BOOST_TEST(pad.valid_rows == 2u);
  const auto [dropped, drop] = last_of(pp::last_batch::drop);
  BOOST_TEST(dropped == 2u);
  BOOST_TEST(drop.valid_rows == 4u);
}

BOOST_AUTO_TEST_CASE(an_empty_source_has_no_blocks_and_no_batches) {
  const pp::order order(pp::sequential{}, {.rows = 0, .row_bytes = 4});
  const pp::schedule plan(order, {4, 4, 16, pp::last_batch::pad}, 0, 3, 0);
  BOOST_TEST(plan.blocks() == 0u);
  BOOST_TEST(plan.batches() == 0u);
}

// 10 rows are 3 batches: of 2^63 epochs, 3 * 2^63 batches would be none modulo 2^64.
BOOST_AUTO_TEST_CASE(a_run_of_more_epochs_than_numbers_hold_goes_on_for_longer_than_anybody_waits) {
  for (const pp::order_options& how :
       std::vector<pp::order_options>{pp::sequential{}, pp::shuffled{.seed = 1, .run_rows = 2, .pool_rows = 6}}) {
    const pp::order order(how, {.rows = 10, .row_bytes = 4});
    for (const std::uint64_t epochs : {~std::uint64_t{0}, std::uint64_t{1} << 63, (~std::uint64_t{0} / 3) + 1}) {
      const pp::schedule plan(order, {4, 4, 16, pp::last_batch::pad}, 7, epochs, 1);
      BOOST_TEST(plan.batches() > std::uint64_t{1} << 59);
      BOOST_TEST(plan.blocks() > std::uint64_t{1} << 59);
      BOOST_TEST(plan.end() == plan.batches() * 4);
      BOOST_TEST(plan.batch(plan.batches() - 1).index == 2u);
      BOOST_TEST(plan.piece_at(plan.end() - 4, plan.end()).blocks_needed == plan.blocks());
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
