// What orders promise, over a few hundred random sources, selections, runs, pools and shards, beside models that are as
// naive as can be. Every configuration follows from its number, which is shown where something is wrong.

#include <penstock/pipeline/order.hpp>

#include "drawn_rows.hpp"
#include "mixed_rows.hpp"
#include "order_rows.hpp"
#include "row_supply.hpp"
#include "schedule.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace pp = penstock::pipeline;
using penstock::test::extents_are_the_reading_rows;
using penstock::test::rows_of;
using penstock::test::sorted;

namespace {

using rows = std::vector<std::uint64_t>;

/// A source, the rows of it that take part, and who shares it.
struct configuration {
  std::uint64_t number = 0;
  pp::source_shape shape;
  rows chosen;                              ///< in the order of their numbers
  std::shared_ptr<const pp::row_set> only;  ///< the same; null: all
  std::uint64_t run = 0, pool = 0, shards = 1, epoch = 0, seed = 0;

  explicit configuration(std::uint64_t n, std::uint64_t least_rows = 1) : number(n) {
    std::mt19937_64 random(n);
    const auto up_to = [&](std::uint64_t most) { return 1 + random() % most; };
    shape = {least_rows + random() % up_to(900), up_to(3) == 1 ? up_to(100) : up_to(60'000), up_to(90)};
    const std::uint64_t kept = up_to(4);  // of four rows; 4: all
    pp::row_set set(shape.rows);
    for (std::uint64_t row = 0; row < shape.rows; ++row)
      if (random() % 4 < kept || row % 97 < least_rows)
        chosen.push_back(row);
      else
        set.remove(row);
    set.count();
    if (chosen.size() < shape.rows || up_to(2) == 1) only = std::make_shared<const pp::row_set>(set);
    run = up_to(up_to(120));
    pool = run + random() % up_to(400);
    shards = up_to(3) == 1 ? 1 : up_to(12);
    epoch = up_to(2) == 1 ? random() % 5 : random();
    seed = random();
  }
  std::uint64_t size() const { return chosen.size(); }
  rows divisors() const {
    rows found;
    for (std::uint64_t ranks = 1; ranks <= shards; ++ranks)
      if (shards % ranks == 0) found.push_back(ranks);
    return found;
  }
  friend std::ostream& operator<<(std::ostream& out, const configuration& c) {
    return out << "configuration " << c.number << ": " << c.chosen.size() << " of " << c.shape.rows << " rows of "
               << c.shape.row_bytes << " bytes, chunks of " << c.shape.chunk_rows << ", run " << c.run << ", pool "
               << c.pool << ", " << c.shards << " shards, epoch " << c.epoch << ", seed " << c.seed;
  }
};

using maker = std::function<pp::order(pp::shard_options)>;

/// The epoch dealt out: row number p of rank r of R is number r + p * R of one process that serves all shards; shards
/// differ by a row at most, ranks get the same number of batches, and steps of all ranks hold the same rows for every
/// R.
rows check_ranks(const configuration& c, const maker& make, std::uint64_t count) {
  const rows all = rows_of(make({.shards = c.shards, .rank = 0, .ranks = 1}), c.epoch);
  BOOST_REQUIRE_EQUAL(all.size(), count);
  const std::uint64_t step_rows = c.shards * (1 + c.number % 7);  // of all ranks together
  for (const std::uint64_t ranks : c.divisors())
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
      const pp::order order = make({.shards = c.shards, .rank = rank, .ranks = ranks});
      const rows own = rows_of(order, c.epoch);
      BOOST_REQUIRE(extents_are_the_reading_rows(order, c.epoch));
      rows expected;
      for (std::uint64_t p = rank; p < all.size(); p += ranks) expected.push_back(all[p]);
      BOOST_REQUIRE(own == expected);
      using pp::schedule;
      const std::uint64_t batch = step_rows / ranks;
      BOOST_REQUIRE_EQUAL(schedule::batches_per_epoch(order, batch, pp::last_batch::pad),
                          (count + step_rows - 1) / step_rows);
      BOOST_REQUIRE_EQUAL(schedule::batches_per_epoch(order, batch, pp::last_batch::drop), count / step_rows);
    }
  return all;
}

/// The sequence that was dealt: turn t of the runs is shard t modulo all shards'; what is left, their pieces in turn.
rows undealt(const std::vector<rows>& shards, std::uint64_t run) {
  std::uint64_t count = 0;
  for (const rows& one : shards) count += one.size();
  const std::uint64_t rounds = count / run / shards.size();
  rows sequence;
  for (std::uint64_t row = 0; row < rounds * run; row += run)
    for (const rows& one : shards)
      for (std::uint64_t i = 0; i < run; ++i) sequence.push_back(one.at(row + i));
  for (const rows& one : shards)
    sequence.insert(sequence.end(), one.begin() + static_cast<long>(rounds * run), one.end());
  return sequence;
}

/// Whether the rows are whole runs of those that take part, each begun at a multiple of its length; the last of them,
/// which may be short, where `short_last` ends the sequence.
bool is_made_of_runs(const rows& sequence, const configuration& c, std::uint64_t run, bool short_last) {
  std::map<std::uint64_t, std::uint64_t> place_of;
  for (std::uint64_t place = 0; place < c.size(); ++place) place_of[c.chosen[place]] = place;
  for (std::uint64_t at = 0; at < sequence.size();) {
    const std::uint64_t first = place_of.at(sequence[at]), length = std::min(run, c.size() - first);
    if (first % run != 0 || at + length > sequence.size()) return false;
    for (std::uint64_t i = 0; i < length; ++i)
      if (sequence[at + i] != c.chosen[first + i]) return false;
    if (length < run && short_last && at + length != sequence.size()) return false;
    at += length;
  }
  return true;
}

/// The same where what is left after full rounds was dealt from another row on.
bool is_made_of_turned_runs(rows sequence, const configuration& c, std::uint64_t run) {
  const std::uint64_t in_rounds = sequence.size() / run / c.shards * run * c.shards;
  const auto rest = sequence.begin() + static_cast<long>(in_rounds);
  for (std::uint64_t turns = in_rounds; turns < sequence.size(); ++turns) {
    const auto place = std::lower_bound(c.chosen.begin(), c.chosen.end(), *rest) - c.chosen.begin();
    if (static_cast<std::uint64_t>(place) % run == 0 && is_made_of_runs(sequence, c, run, true)) return true;
    std::rotate(rest, rest + 1, sequence.end());
  }
  return sequence.size() == in_rounds && is_made_of_runs(sequence, c, run, true);
}

/// Within windows of `window` rows, what is read is what comes out.
bool is_drawn_within(const rows& read, const rows& drawn, std::uint64_t window) {
  for (std::uint64_t first = 0; first < read.size(); first += window) {
    const auto part = [&](const rows& of) {
      const auto end = std::min<std::uint64_t>(first + window, of.size());
      return sorted(rows(of.begin() + static_cast<long>(first), of.begin() + static_cast<long>(end)));
    };
    if (part(read) != part(drawn)) return false;
  }
  return read.size() == drawn.size();
}

rows reading_rows_of(const pp::order& order, std::uint64_t epoch) {
  rows read;
  for (std::uint64_t p = 0; p < order.rows(); ++p) read.push_back(order.reading_row(epoch, p));
  return read;
}

/// How many rows a process of its own gets for each shard, and in which order it reads and draws them.
void check_shards(const configuration& c, const maker& make, const pp::order_options& how) {
  const bool shuffled = std::holds_alternative<pp::shuffled>(how);
  std::vector<rows> read;
  std::uint64_t run = 1;
  for (std::uint64_t shard = 0; shard < c.shards; ++shard) {
    const pp::order order = make({.shards = c.shards, .rank = shard, .ranks = c.shards});
    run = std::max<std::uint64_t>(order.run_rows(), 1);
    read.push_back(reading_rows_of(order, c.epoch));
    const std::uint64_t of_a_shard = std::max<std::uint64_t>((c.size() + c.shards - 1) / c.shards, 1);
    if (shuffled && order.rows() > 0)
      BOOST_REQUIRE_EQUAL(order.window_rows(), std::min({c.pool, of_a_shard, order.rows()}));
    const std::uint64_t window = shuffled ? std::min(c.pool, of_a_shard) : 1;
    BOOST_REQUIRE(is_drawn_within(read.back(), rows_of(order, c.epoch), window));
  }
  const rows sequence = undealt(read, run);
  if (std::holds_alternative<pp::sequential>(how)) BOOST_REQUIRE(sequence == c.chosen);
  if (!shuffled) return;
  BOOST_REQUIRE_EQUAL(run, std::min(c.run, c.size()));
  if (c.shards > 1 && c.size() / run / c.shards < 2)
    BOOST_REQUIRE(is_made_of_turned_runs(sequence, c, run));
  else
    BOOST_REQUIRE(is_made_of_runs(sequence, c, run, c.shards > 1));
}

pp::order made(const configuration& c, const pp::order_options& how, pp::row_supply supply, pp::shard_options share) {
  supply.only = c.only;
  return {how, c.shape, supply, share};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(order_properties)

BOOST_AUTO_TEST_CASE(every_row_comes_once_by_runs_and_pools_to_any_shards_and_ranks) {
  for (std::uint64_t number = 0; number < 300; ++number) {
    const configuration c(number);
    for (const pp::order_options& how :
         std::vector<pp::order_options>{pp::sequential{}, pp::shuffled{c.seed, c.run, c.pool}, pp::random{c.seed}}) {
      BOOST_TEST_INFO_SCOPE(c << ", order " << how.index());
      const auto make = [&](pp::shard_options share) { return made(c, how, {}, share); };
      BOOST_REQUIRE(!make({}).repeats());
      BOOST_REQUIRE(sorted(check_ranks(c, make, c.size())) == c.chosen);
      check_shards(c, make, how);
    }
  }
}

// Draws fall to any part of the rows as often as its share of the weights says: within six standard deviations.
BOOST_AUTO_TEST_CASE(weighted_draws_are_as_many_as_asked_for_and_follow_the_weights) {
  for (std::uint64_t number = 1000; number < 1150; ++number) {
    const configuration c(number);
    BOOST_TEST_INFO_SCOPE(c);
    std::mt19937_64 random(number);
    auto table = std::make_shared<pp::weight_table>(c.size());
    std::vector<double> weights;
    for (std::uint64_t place = 0; place < c.size(); ++place)
      weights.push_back(place > 0 && random() % 4 == 0
                            ? 0
                            : std::ldexp(1 + static_cast<double>(random() % 1000), static_cast<int>(random() % 5)));
    for (const double weight : weights) table->add(weight);
    table->finish();
    const std::uint64_t count = 1 + random() % 3000;
    const auto drawn = check_ranks(
        c,
        [&](pp::shard_options share) {
          return made(c, pp::weighted{.seed = c.seed, .rows = count}, {.weights = table}, share);
        },
        count);
    double share = 0, all = 0, seen = 0;
    std::map<std::uint64_t, std::uint64_t> place_of;
    std::vector<bool> in_part;
    for (std::uint64_t place = 0; place < c.size(); ++place) {
      place_of[c.chosen[place]] = place;
      in_part.push_back(random() % 2 == 0);
      all += weights[place];
      if (in_part.back()) share += weights[place];
    }
    share /= all;
    for (const std::uint64_t row : drawn) {
      const std::uint64_t place = place_of.at(row);
      BOOST_REQUIRE(weights[place] > 0);
      seen += in_part[place];
    }
    const auto n = static_cast<double>(count);
    BOOST_REQUIRE_LE(std::abs(seen - share * n), 6 * std::sqrt(n * share * (1 - share)) + 1e-9);
  }
}

// Rounds in which every class comes once; in a class, passes in which every row comes once.
BOOST_AUTO_TEST_CASE(balanced_draws_come_in_rounds_of_the_classes_and_passes_of_their_rows) {
  for (std::uint64_t number = 2000; number < 2150; ++number) {
    const configuration c(number);
    BOOST_TEST_INFO_SCOPE(c);
    std::mt19937_64 random(number);
    const std::uint64_t classes = 1 + random() % std::min<std::uint64_t>(c.size(), 12);
    pp::row_classes known{{}, static_cast<std::uint32_t>(classes)};
    for (std::uint64_t place = 0; place < c.size(); ++place)
      known.of_row.push_back(
          static_cast<std::uint32_t>(place < classes ? place : std::min(random() % classes, random() % classes)));
    const auto table = std::make_shared<pp::class_table>(known);
    const std::uint64_t count = 1 + random() % 3000;
    const auto drawn = check_ranks(
        c,
        [&](pp::shard_options share) {
          return made(c, pp::class_balanced{.seed = c.seed, .rows = count}, {.classes = table}, share);
        },
        count);
    std::map<std::uint64_t, std::uint32_t> class_of;
    std::vector<std::uint64_t> size(classes, 0);
    for (std::uint64_t place = 0; place < c.size(); ++place) {
      class_of[c.chosen[place]] = known.of_row[place];
      ++size[known.of_row[place]];
    }
    std::set<std::uint32_t> round;
    std::vector<std::set<std::uint64_t>> pass(classes);
    for (const std::uint64_t row : drawn) {
      const std::uint32_t one = class_of.at(row);
      BOOST_REQUIRE(round.insert(one).second);
      if (round.size() == classes) round.clear();
      BOOST_REQUIRE(pass[one].insert(row).second);
      if (pass[one].size() == size[one]) pass[one].clear();
    }
  }
}

// Sources by ratio: after any number of epochs, full turns are within one (for each source before) of what the ratios
// say, and so are the short ones that end epochs; and each source's rows come once in each pass through it; where runs
// are filled up, at least once.
BOOST_AUTO_TEST_CASE(mixed_sources_keep_their_ratios_and_go_through_their_rows_pass_by_pass) {
  for (std::uint64_t number = 3000; number < 3150; ++number) {
    configuration c(number, 5);
    c.epoch = 0;
    c.only = nullptr;
    std::mt19937_64 random(number);
    auto mix = std::make_shared<pp::mix_table>();
    c.shape.rows = 0;
    double ratios = 0;
    for (std::uint64_t parts = 1 + random() % 4; parts > 0; --parts) {
      mix->parts.push_back({c.shape.rows, 1 + random() % 300, 0.1 + static_cast<double>(random() % 100) / 100});
      c.shape.rows += mix->parts.back().rows;
      ratios += mix->parts.back().ratio;
    }
    mix->rows = c.run * mix->parts.size() + random() % 2500;
    for (const pp::order_options& how :
         std::vector<pp::order_options>{pp::sequential{}, pp::shuffled{c.seed, c.run, c.pool}, pp::random{c.seed}}) {
      BOOST_TEST_INFO_SCOPE(c << ", " << mix->parts.size() << " sources, " << mix->rows << " rows, order "
                              << how.index());
      const auto make = [&](pp::shard_options share) { return made(c, how, {.mix = mix}, share); };
      const auto part_of = [&](std::uint64_t row) {
        std::size_t part = 0;
        while (row >= mix->parts[part].first + mix->parts[part].rows) ++part;
        return part;
      };
      check_ranks(c, make, mix->rows);
      const pp::order order = make({.shards = c.shards, .rank = 0, .ranks = 1});
      const std::uint64_t run = std::max<std::uint64_t>(order.run_rows(), 1);
      // The sequence before it is dealt is what shards read, put together again.
      std::vector<double> seen(mix->parts.size(), 0);
      std::map<std::uint64_t, std::uint64_t> counts;
      const std::uint64_t epochs = 3;
      for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
        std::vector<rows> read;
        for (std::uint64_t shard = 0; shard < c.shards; ++shard)
          read.push_back(reading_rows_of(make({.shards = c.shards, .rank = shard, .ranks = c.shards}), epoch));
        const rows sequence = undealt(read, run);
        for (std::uint64_t p = 0; p < sequence.size(); ++p) {
          ++seen[part_of(sequence[p])];
          ++counts[sequence[p]];
        }
        for (std::size_t part = 0; part < seen.size(); ++part) {
          const double n = static_cast<double>((epoch + 1) * mix->rows), share = mix->parts[part].ratio / ratios;
          const auto slack = static_cast<double>((run + mix->rows % run) * (part + 1));
          BOOST_REQUIRE_LE(std::abs(seen[part] - share * n), slack);
        }
      }
      for (std::size_t part = 0; part < seen.size(); ++part) {
        const pp::mix_table::part& of = mix->parts[part];
        const std::uint64_t in_runs = (of.rows + run - 1) / run * run;
        const auto passes = static_cast<std::uint64_t>(seen[part]) / in_runs;
        for (std::uint64_t row = of.first; row < of.first + of.rows; ++row) {
          const std::uint64_t lost = run > 1 ? epochs : 0;  // turns that an epoch's end cut short
          BOOST_REQUIRE_GE(counts[row] + lost, passes);
          if (run == 1) BOOST_REQUIRE_LE(counts[row], passes + 1);
        }
      }
    }
  }
}

// What python/tests/reference_order.py, which was written from the descriptions and shares no code, says of seed 7; the
// same numbers are in python/tests/test_state.py. Another draw would be another order for everybody's checkpoints.
BOOST_AUTO_TEST_CASE(the_draws_are_those_that_are_written_down) {
  const auto of = [](const pp::order_options& how, std::uint64_t count, const pp::row_supply& supply = {},
                     pp::shard_options share = {}) {
    return pp::order(how, {.rows = count, .row_bytes = 8}, supply, share);
  };
  const auto check = [](const char* name, const pp::order& order, std::uint64_t epoch, const rows& expected) {
    BOOST_TEST_INFO_SCOPE(name);
    BOOST_TEST(rows_of(order, epoch) == expected, boost::test_tools::per_element());
  };
  const auto shuffled = [](std::uint64_t pool) { return pp::shuffled{.seed = 7, .run_rows = 4, .pool_rows = pool}; };
  check("shuffled, epoch 0", of(shuffled(12), 24), 0,
        {10, 15, 11, 16, 12, 19, 8, 9, 13, 17, 18, 14, 23, 21, 2, 0, 1, 4, 5, 7, 22, 6, 20, 3});
  check("shuffled, epoch 5", of(shuffled(12), 24), 5,
        {15, 1, 13, 0, 2, 12, 5, 6, 7, 3, 4, 14, 16, 19, 22, 17, 23, 21, 9, 11, 20, 10, 8, 18});
  check("a short run", of(shuffled(12), 26), 0,
        {8, 13, 9, 16, 24, 19, 14, 15, 25, 17, 18, 12, 21, 3, 0, 10, 11, 22, 23, 5, 20, 4, 2, 1, 7, 6});
  check("rank 1 of 2", of(shuffled(8), 26, {}, {.shards = 2, .rank = 1, .ranks = 2}), 1,
        {2, 0, 23, 22, 1, 20, 3, 21, 13, 25, 12, 14, 15});
  const auto of_rank = [&](std::uint64_t run, std::uint64_t rank) {
    return of(pp::shuffled{.seed = 7, .run_rows = run, .pool_rows = run}, 26, {},
              {.shards = 2, .rank = rank, .ranks = 2});
  };
  check("runs too long for two", of_rank(20, 1), 2, {21, 24, 25, 23, 20, 22, 19, 18, 13, 16, 14, 17, 15});
  check("random, epoch 0", of(pp::random{.seed = 7}, 24), 0,
        {1, 6, 14, 2, 11, 23, 7, 5, 13, 15, 10, 18, 20, 4, 19, 17, 16, 22, 8, 21, 3, 9, 12, 0});
  check("random, epoch 5", of(pp::random{.seed = 7}, 24), 5,
        {17, 3, 6, 9, 22, 16, 5, 7, 23, 19, 12, 10, 18, 8, 2, 21, 4, 20, 1, 15, 13, 11, 0, 14});

  const auto weights = std::make_shared<pp::weight_table>(8);
  for (const double weight : {0, 1, 2, 3, 4, 0, 10, 5}) weights->add(weight);
  weights->finish();
  check("weighted", of(pp::weighted{.seed = 7, .rows = 24}, 8, {.weights = weights}), 1,
        {2, 6, 6, 7, 2, 2, 3, 7, 2, 6, 4, 7, 4, 6, 6, 7, 6, 4, 6, 6, 6, 4, 4, 4});
  const auto classes =
      std::make_shared<pp::class_table>(pp::row_classes{.of_row = {0, 0, 1, 0, 1, 2, 0, 0, 1, 0}, .classes = 3});
  check("balanced", of(pp::class_balanced{.seed = 7, .rows = 24}, 10, {.classes = classes}), 1,
        {9, 4, 5, 8, 5, 7, 0, 5, 2, 1, 8, 5, 3, 4, 5, 2, 6, 5, 5, 9, 8, 4, 6, 5});
  const auto mix = std::make_shared<pp::mix_table>();
  mix->parts = {{0, 10, 3}, {10, 5, 1}};
  mix->rows = 24;
  check("mixed", of(shuffled(12), 15, {.mix = mix}), 1,
        {9, 0, 3, 0, 11, 1, 13, 1, 10, 12, 8, 2, 12, 6, 0, 4, 2, 1, 7, 13, 10, 5, 3, 11});
  const auto cut = std::make_shared<pp::mix_table>(*mix);  // its last turn is short
  cut->rows = 26;
  check("mixed, epoch 2", of(shuffled(12), 15, {.mix = cut}), 2,
        {0, 3, 2, 12, 9, 11, 8, 9, 10, 14, 9, 8, 4, 3, 7, 0, 5, 6, 1, 0, 9, 2, 8, 9, 14, 14});
  check("mixed, epoch 3", of(shuffled(12), 15, {.mix = cut}), 3,
        {4, 1, 6, 3, 2, 11, 5, 13, 7, 12, 0, 10, 7, 14, 11, 0, 13, 5, 12, 1, 2, 6, 4, 3, 8, 9});
}

BOOST_AUTO_TEST_SUITE_END()
