// "Every row exactly once per epoch", through whole pipelines: random sources, selections, splits, runs, pools, blocks,
// batches, shards and ranks. Every trial follows from its number, which is shown where something is wrong.

#include "order_rows.hpp"
#include "small_file.hpp"

#include <algorithm>
#include <random>
#include <sstream>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
using namespace penstock::literals;
using penstock::test::check;
using penstock::test::small_file;
using penstock::test::sorted;

namespace {

using rows = std::vector<std::uint64_t>;

/// One trial. What takes part is found here by looking at each row's number.
struct trial {
  explicit trial(std::uint64_t n) : number(n), random(n) {
    const std::uint64_t count = up_to(700);
    file = std::make_unique<small_file>(count, random() % 2 * up_to(100), static_cast<int>(random() % 2));
    run = up_to(60);
    pool = run + up_to(300);
    ranks = up_to(3);
    shards = ranks * up_to(3);
    batch = up_to(130);
    epoch = random() % 1000;
    last = random() % 2 ? pp::last_batch::pad : pp::last_batch::drop;
    transport = {.block_bytes = up_to(20'000), .slots = random() % 2 * up_to(12), .threads = random() % 4};
    for (std::uint64_t row = 0; row < count; ++row) chosen.push_back(row);
    text << "trial " << n << ": " << count << " rows, run " << run << ", pool " << pool << ", " << shards << " shards, "
         << ranks << " ranks, batches of " << batch << ", epoch " << epoch << ", blocks of " << transport.block_bytes;
  }
  std::uint64_t up_to(std::uint64_t most) { return 1 + random() % most; }

  template <class Keep>
  void keep(Keep keep) {
    std::erase_if(chosen, [&](std::uint64_t row) { return !keep(row); });
  }
  /// Chooses some rows, and gives the source in which only these take part.
  pp::source choose() {
    pp::source from = file->all();
    const std::uint64_t count = file->rows();
    if (random() % 3 == 0) {
      const pp::extent a{random() % count, 0}, b{random() % count, up_to(count)};
      const std::uint64_t first = b.first, end = std::min(count, b.first + b.count);
      from.select(
          pp::selection(std::vector<pp::extent>{{a.first, 1}, {first, end - first}, {first, (end - first) / 2}}));
      keep([&](std::uint64_t row) { return row == a.first || (row >= first && row < end); });
    }
    if (random() % 3 == 0) {
      rows list;
      for (std::uint64_t n = 0; n < count; ++n) list.push_back(random() % count);  // again and again, in any order
      from.select(pp::selection(list));
      keep([&](std::uint64_t row) { return std::find(list.begin(), list.end(), row) != list.end(); });
    }
    if (random() % 3 == 0) {
      const auto part = static_cast<double>(up_to(3));
      from.select(pp::where("label", [=](double label) {
        return static_cast<std::uint64_t>(label) % 7 >= static_cast<std::uint64_t>(part);
      }));
      keep([&](std::uint64_t row) { return row % 7 >= static_cast<std::uint64_t>(part); });
    }
    return from;
  }
  std::vector<pp::order_options> orders() {
    return {pp::sequential{}, pp::shuffled{.seed = random(), .run_rows = run, .pool_rows = pool}, pp::random{random()}};
  }
  pp::pipeline build(const pp::source& from, const pp::order_options& how, std::uint64_t rank) const {
    return (pp::read(from, how) | pp::batched({.rows = batch, .last = last}) |
            pp::sharded({.shards = shards, .rank = rank, .ranks = ranks}) | pp::transport(transport))
        .build(gpu::device::host(), {.device_bytes = 16_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB});
  }

  std::uint64_t number;
  std::mt19937_64 random;
  std::unique_ptr<small_file> file;
  rows chosen;
  std::uint64_t run, pool, ranks, shards, batch, epoch;
  pp::last_batch last;
  pp::transport_options transport;
  std::ostringstream text;
};

/// The valid rows of an epoch, of all ranks; they get the same number of batches, all of full size, and what is padding
/// is masked.
rows epoch_of_all_ranks(const trial& t, const pp::source& from, const pp::order_options& how) {
  rows seen;
  std::uint64_t batches = 0;
  for (std::uint64_t rank = 0; rank < t.ranks; ++rank) {
    pp::pipeline pipeline = t.build(from, how, rank);
    if (rank > 0) BOOST_REQUIRE_EQUAL(pipeline.batches_per_epoch(), batches);
    batches = pipeline.batches_per_epoch();
    std::uint64_t own = 0;
    for (const pp::batch& one : pipeline.epochs(t.epoch, 1)) {
      check(one, seen);
      BOOST_REQUIRE_EQUAL(one.index(), own++);
      BOOST_REQUIRE_EQUAL(one.rows(), t.batch);
      for (std::size_t row = 0; t.last == pp::last_batch::pad && row < one.rows(); ++row)
        BOOST_REQUIRE_EQUAL(one.mask()[row], row < one.valid_rows() ? 1 : 0);
    }
    BOOST_REQUIRE_EQUAL(own, batches);
  }
  return seen;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(every_row_once)

BOOST_AUTO_TEST_CASE(orders_that_promise_it_keep_it_for_any_selection_shape_pool_run_batch_and_ranks) {
  for (std::uint64_t number = 0; number < 100; ++number) {
    trial t(number);
    const pp::source from = t.choose();
    for (const pp::order_options& how : t.orders()) {
      BOOST_TEST_INFO_SCOPE(t.text.str() << ", order " << how.index() << ", " << t.chosen.size() << " take part");
      const rows seen = sorted(epoch_of_all_ranks(t, from, how));
      if (t.last == pp::last_batch::pad) {
        BOOST_REQUIRE(seen == t.chosen);
        continue;
      }
      // What fills no batch of all ranks is left out; the rest comes once.
      BOOST_REQUIRE_EQUAL(seen.size(), t.chosen.size() / (t.batch * t.ranks) * t.batch * t.ranks);
      BOOST_REQUIRE(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
      BOOST_REQUIRE(std::includes(t.chosen.begin(), t.chosen.end(), seen.begin(), seen.end()));
    }
  }
}

BOOST_AUTO_TEST_CASE(the_parts_of_any_split_hold_every_row_once_and_no_group_twice) {
  for (std::uint64_t number = 500; number < 550; ++number) {
    trial t(number);
    t.last = pp::last_batch::pad;
    const pp::source all = t.choose();
    const bool grouped = number % 2 == 0;
    const pp::split how{.validation = static_cast<double>(t.random() % 101) / 100,
                        .seed = t.random(),
                        .group = grouped ? "image" : ""};  // that of row r begins with r * 12 modulo 251
    for (const pp::order_options& order : t.orders()) {
      BOOST_TEST_INFO_SCOPE(t.text.str() << ", order " << order.index() << ", " << how.validation << " to validate on");
      pp::source training = all, validation = all;
      const rows first = sorted(epoch_of_all_ranks(t, training.select(pp::training_part(how)), order));
      const rows second = sorted(epoch_of_all_ranks(t, validation.select(pp::validation_part(how)), order));
      rows both;
      std::merge(first.begin(), first.end(), second.begin(), second.end(), std::back_inserter(both));
      BOOST_REQUIRE(both == t.chosen);
      for (const std::uint64_t a : first)
        for (const std::uint64_t b : second) BOOST_REQUIRE(!grouped || a % 251 != b % 251);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
