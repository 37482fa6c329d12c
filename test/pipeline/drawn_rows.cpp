#include "drawn_rows.hpp"

#include "order_rows.hpp"
#include "row_supply.hpp"
#include "small_file.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <cmath>
#include <functional>
#include <limits>
#include <set>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
namespace data = boost::unit_test::data;
using namespace penstock::literals;
using penstock::test::consume;
using penstock::test::extents_are_the_reading_rows;
using penstock::test::rows_of;
using penstock::test::small_file;
using penstock::test::sorted;

namespace {

const auto every_device = data::make(penstock::test::devices());
const gpu::budget small{.device_bytes = 8_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB};

std::shared_ptr<const pp::weight_table> table_of(const std::vector<double>& weights) {
  auto table = std::make_shared<pp::weight_table>(weights.size());
  for (const double weight : weights) table->add(weight);
  table->finish();
  return table;
}

pp::order by_weight(const std::vector<double>& weights, std::uint64_t seed, std::uint64_t rows,
                    pp::shard_options share = {}) {
  return {pp::weighted{.seed = seed, .rows = rows},
          {.rows = weights.size(), .row_bytes = 8},
          pp::row_supply{.weights = table_of(weights)},
          share};
}

/// Row r is of class 0 below 90, of class 1 below 99, and row 99 alone of class 2.
pp::order balanced(std::uint64_t seed, std::uint64_t rows, pp::shard_options share = {}) {
  pp::row_classes known{std::vector<std::uint32_t>(100, 0), 3};
  for (std::uint64_t row = 90; row < 100; ++row) known.of_row[row] = row < 99 ? 1 : 2;
  return {pp::class_balanced{.seed = seed, .rows = rows},
          {.rows = 100, .row_bytes = 8},
          pp::row_supply{.classes = std::make_shared<pp::class_table>(known)},
          share};
}

std::vector<std::size_t> counted(const std::vector<std::uint64_t>& rows, std::size_t values) {
  std::vector<std::size_t> counts(values, 0);
  for (const auto row : rows) ++counts.at(row);
  return counts;
}

std::vector<std::uint64_t> epoch_of(const small_file& file, const pp::order_options& how,
                                    const std::string& device = "host") {
  auto pipeline = (pp::read(file.all(), how) | pp::batched({.rows = 50})).build(gpu::device::parse(device), small);
  return consume(pipeline, 0, 1);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(drawn_rows)

BOOST_AUTO_TEST_CASE(a_number_falls_to_the_row_whose_share_of_the_weights_it_lies_in) {
  const auto table = table_of({1, 0, 2, 0, 1, 0});
  const std::uint64_t quarter = std::uint64_t{1} << 61;  // of 2^63
  BOOST_TEST(table->place_at(0) == 0u);
  BOOST_TEST(table->place_at(quarter - 1) == 0u);
  BOOST_TEST(table->place_at(quarter) == 2u);
  BOOST_TEST(table->place_at(3 * quarter - 1) == 2u);
  BOOST_TEST(table->place_at(3 * quarter) == 4u);
  BOOST_TEST(table->place_at(4 * quarter - 1) == 4u);
}

BOOST_AUTO_TEST_CASE(rows_come_as_often_as_their_weights_say) {
  // Weight r for row r of 50: probability r / 1225. 100,000 draws, each count within five standard deviations.
  std::vector<double> weights(50);
  for (std::size_t row = 0; row < 50; ++row) weights[row] = static_cast<double>(row);
  const auto counts = counted(rows_of(by_weight(weights, 5, 100'000), 2), 50);
  BOOST_TEST(counts[0] == 0u);
  for (std::size_t row = 1; row < 50; ++row) {
    const double p = static_cast<double>(row) / 1225, expected = 100'000 * p;
    BOOST_TEST(std::abs(static_cast<double>(counts[row]) - expected) < 5 * std::sqrt(expected * (1 - p)));
  }
}

BOOST_AUTO_TEST_CASE(every_class_comes_equally_often_and_every_row_of_a_class_nearly_so) {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const auto rows = rows_of(balanced(seed, 300), 7);
    const auto counts = counted(rows, 100);
    for (std::size_t row = 0; row < 90; ++row) BOOST_TEST((counts[row] == 1 || counts[row] == 2));  // 100 draws of 90
    for (std::size_t row = 90; row < 99; ++row) BOOST_TEST((counts[row] == 11 || counts[row] == 12));  // of 9
    BOOST_TEST(counts[99] == 100u);
    for (std::size_t round = 0; round < 100; ++round) {
      std::set<int> classes;
      for (std::size_t p = 3 * round; p < 3 * round + 3; ++p) classes.insert(rows[p] < 90 ? 0 : rows[p] < 99 ? 1 : 2);
      BOOST_TEST(classes.size() == 3u);
    }
  }
}

BOOST_AUTO_TEST_CASE(draws_are_a_function_of_seed_and_epoch_and_say_that_they_repeat) {
  const std::vector<double> weights(200, 1);
  for (const auto& make : std::vector<std::function<pp::order(std::uint64_t)>>{
           [&](std::uint64_t seed) { return by_weight(weights, seed, 0); },
           [&](std::uint64_t seed) { return balanced(seed, 0); }}) {
    BOOST_TEST(rows_of(make(1), 3) == rows_of(make(1), 3));
    BOOST_TEST(rows_of(make(1), 3) != rows_of(make(1), 4));
    BOOST_TEST(rows_of(make(1), 3) != rows_of(make(2), 3));
    BOOST_TEST(make(1).repeats());
    BOOST_TEST(make(1).description().find("drawn with repetition") != std::string::npos);
    BOOST_TEST(extents_are_the_reading_rows(make(1), 3));
  }
  BOOST_TEST(!pp::order(pp::random{1}, {.rows = 5}).repeats());
}

BOOST_AUTO_TEST_CASE(processes_share_the_draws) {
  const std::vector<double> weights(200, 1);
  for (const auto& make : std::vector<std::function<pp::order(pp::shard_options)>>{
           [&](pp::shard_options share) { return by_weight(weights, 9, 501, share); },
           [&](pp::shard_options share) { return balanced(9, 501, share); }}) {
    const auto all = rows_of(make({}), 1);
    for (const std::uint64_t ranks : {1u, 3u, 6u})
      for (std::uint64_t rank = 0; rank < ranks; ++rank) {
        const auto some = rows_of(make({.shards = 6, .rank = rank, .ranks = ranks}), 1);
        BOOST_REQUIRE(some.size() == (501 - rank + ranks - 1) / ranks);
        for (std::uint64_t p = 0; p < some.size(); ++p) BOOST_REQUIRE_EQUAL(some[p], all[rank + p * ranks]);
      }
  }
}

BOOST_DATA_TEST_CASE(a_field_gives_the_weights_or_the_classes, every_device, name) {
  const small_file file(1000, 64, 1);  // a row's label is its number, its image one of 251
  const auto drawn = epoch_of(file, pp::weighted{.seed = 1, .field = "label", .rows = 2000}, name);
  BOOST_TEST(drawn.size() == 2000u);
  // The mean of a row drawn by its number is about two thirds of the rows: 666.3, with a standard deviation of
  // 1000 / sqrt(18) = 235.7 for one.
  double sum = 0;
  for (const auto row : drawn) sum += static_cast<double>(row);
  BOOST_TEST(std::abs(sum / 2000 - 666.3) < 5 * 235.7 / std::sqrt(2000.0));

  std::vector<std::uint64_t> classes;
  for (const auto row : epoch_of(file, pp::class_balanced{.seed = 1, .field = "image", .rows = 2510}, name))
    classes.push_back(row * 12 % 251);
  for (const std::size_t count : counted(classes, 251)) BOOST_TEST(count == 10u);
}

BOOST_AUTO_TEST_CASE(only_rows_that_take_part_are_drawn) {
  const small_file file(1000, 64);
  std::vector<double> weights(1000, 1);
  weights[250] = 0;
  for (const pp::order_options& how :
       std::vector<pp::order_options>{pp::weighted{.seed = 1, .weights = weights, .rows = 3000},
                                      pp::class_balanced{.field = "image", .rows = 3000}}) {
    const auto from = file.all().select(pp::selection(std::vector<pp::extent>{{200, 60}, {990, 10}}));
    auto pipeline = (pp::read(from, how) | pp::batched({.rows = 64})).build(gpu::device::host(), small);
    const auto rows = sorted(consume(pipeline, 0, 1));
    const bool by_weight = std::holds_alternative<pp::weighted>(how);
    BOOST_TEST(rows.size() == 3000u);
    BOOST_TEST(rows.front() >= 200u);
    BOOST_TEST(std::set<std::uint64_t>(rows.begin(), rows.end()).size() == (by_weight ? 69u : 70u));
  }
}

BOOST_AUTO_TEST_CASE(the_plan_holds_the_memory_that_drawing_takes) {
  const small_file file(4096, 64);
  const auto bytes_of = [&](const pp::order_options& how, const std::string& item) {
    std::size_t bytes = 0;
    const auto plan = pp::read(file.all(), how).open().plan(gpu::device::host(), small);
    for (const auto& one : plan.ledger.items())
      if (one.name == item) bytes = one.bytes;
    return bytes;
  };
  BOOST_TEST(bytes_of(pp::weighted{.field = "label"}, "pipeline: weights of rows") == 8 * 4096u);
  BOOST_TEST(bytes_of(pp::weighted{.weights = std::vector<double>(4096, 1)}, "pipeline: weights of rows") ==
             16 * 4096u);
  BOOST_TEST(bytes_of(pp::class_balanced{.field = "image"}, "pipeline: rows by class") == 8 * (4096 + 252u));
}

BOOST_AUTO_TEST_CASE(what_rows_cannot_be_drawn_by_is_refused) {
  const small_file file(100, 64);
  const auto fails_with = [&](const pp::order_options& how, const std::string& part) {
    BOOST_CHECK_EXCEPTION(epoch_of(file, how), std::invalid_argument, [&](const auto& e) {
      BOOST_TEST_MESSAGE(e.what());
      return std::string(e.what()).find(part) != std::string::npos;
    });
  };
  std::vector<double> weights(100, 1);
  weights[17] = -2;
  fails_with(pp::weighted{.weights = weights}, "row 17 has the weight -2");
  weights[17] = std::numeric_limits<double>::quiet_NaN();
  fails_with(pp::weighted{.weights = weights}, "row 17 has the weight nan");
  fails_with(pp::weighted{.weights = std::vector<double>(100, 0)}, "not above 0");
  fails_with(pp::weighted{.weights = {1, 2, 3}}, "3 weights are given for a source of 100 rows");
  fails_with(pp::weighted{}, "needs either the field");
  fails_with(pp::weighted{.field = "label", .weights = weights}, "needs either the field");
  fails_with(pp::weighted{.field = "image"}, "12 numbers in a row");
  fails_with(pp::weighted{.field = "label", .rows = ~std::uint64_t{0}}, "at most 281474976710656");
  fails_with(pp::class_balanced{.field = "kind"}, "field 'kind', which the source does not have");
}

BOOST_AUTO_TEST_CASE(where_no_row_takes_part_an_epoch_is_empty_and_a_wish_for_rows_is_refused) {
  const small_file file(100, 64);
  const auto none = file.all().select(pp::selection(std::vector<std::uint64_t>{}));
  const auto rows = [&](const pp::order_options& how) {
    return pp::read(none, how).build(gpu::device::host(), small).rows();
  };
  BOOST_TEST(rows(pp::weighted{.field = "label"}) == 0u);
  BOOST_TEST(rows(pp::class_balanced{}) == 0u);
  BOOST_CHECK_THROW(rows(pp::weighted{.field = "label", .rows = 10}), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
