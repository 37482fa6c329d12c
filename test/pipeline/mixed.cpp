#include <penstock/pipeline/mixed.hpp>

#include "mixed_rows.hpp"
#include "order_rows.hpp"
#include "row_supply.hpp"
#include "small_file.hpp"

#include <penstock/io/error.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <cmath>
#include <map>
#include <random>

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

/// Sources of so many rows each, one after another.
pp::order mix_of(const std::vector<std::pair<std::uint64_t, double>>& sources, const pp::order_options& how,
                 std::uint64_t rows, pp::shard_options share = {}, const pp::source_shape& like = {.row_bytes = 8}) {
  auto table = std::make_shared<pp::mix_table>();
  std::uint64_t first = 0;
  for (const auto& [count, ratio] : sources) {
    table->parts.push_back({first, count, ratio});
    first += count;
  }
  table->rows = rows;
  pp::source_shape shape = like;
  shape.rows = first;
  return {how, shape, pp::row_supply{.mix = table}, share};
}

void fails_with(const std::function<void()>& make, const std::string& part) {
  const auto says = [&](const std::exception& e) {
    BOOST_TEST_MESSAGE(e.what());
    return std::string(e.what()).find(part) != std::string::npos;
  };
  BOOST_CHECK_EXCEPTION(make(), std::exception, says);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(mixed)

// Shares of 0.5 and 0.5: round(j / 2) steps up at j = 0, 2, 4 (1/2 rounds up): the first source has the even turns.
BOOST_AUTO_TEST_CASE(rows_in_sequence_take_turns_by_ratio_and_start_again_where_a_source_ends) {
  const std::vector<std::uint64_t> expected{0, 3, 1, 4, 2, 5, 0, 6, 1, 7};
  BOOST_TEST(rows_of(mix_of({{3, 1}, {5, 1}}, pp::sequential{}, 10), 0) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_epoch_goes_on_in_each_source_where_the_one_before_ended) {
  const auto order = mix_of({{3, 1}, {5, 1}}, pp::sequential{}, 4);
  BOOST_TEST(rows_of(order, 0) == (std::vector<std::uint64_t>{0, 3, 1, 4}), boost::test_tools::per_element());
  BOOST_TEST(rows_of(order, 1) == (std::vector<std::uint64_t>{2, 5, 0, 6}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(any_stretch_has_rows_of_each_source_as_the_ratios_say) {
  const auto order = mix_of({{1000, 0.7}, {50, 0.2}, {9000, 0.1}}, pp::random{5}, 2000);
  std::vector<double> seen(3, 0);
  const auto rows = rows_of(order, 3);
  for (std::size_t p = 0; p < rows.size(); ++p) {
    ++seen[rows[p] < 1000 ? 0 : rows[p] < 1050 ? 1 : 2];
    const auto n = static_cast<double>(p + 1);
    BOOST_REQUIRE(std::abs(seen[0] - 0.7 * n) <= 1 && std::abs(seen[1] - 0.2 * n) <= 2 &&
                  std::abs(seen[2] - 0.1 * n) <= 2);
  }
  BOOST_TEST(seen[0] == 1400);
}

BOOST_AUTO_TEST_CASE(rows_of_a_source_come_once_in_each_pass_through_it) {
  // 100 of 200 rows an epoch: 4 epochs are 8 passes of the first source, and one of the second.
  std::map<std::uint64_t, int> counts;
  const auto order = mix_of({{50, 1}, {400, 1}}, pp::random{2}, 200);
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch)
    for (const auto row : rows_of(order, epoch)) ++counts[row];
  for (std::uint64_t row = 0; row < 450; ++row) BOOST_REQUIRE_EQUAL(counts[row], row < 50 ? 8 : 1);
}

BOOST_AUTO_TEST_CASE(shuffled_sources_are_read_by_runs_and_a_short_last_one_is_filled_up) {
  std::mt19937_64 random(4);
  for (int trial = 0; trial < 100; ++trial) {
    const std::uint64_t a = 1 + random() % 500, b = 1 + random() % 500, run = 1 + random() % 30,
                        pool = run + random() % 200, rows = 2 * run + random() % 2000;
    const auto order = mix_of({{a, 1}, {b, 3}}, pp::shuffled{random(), run, pool}, rows);
    BOOST_REQUIRE_EQUAL(order.rows(), rows);
    BOOST_REQUIRE(extents_are_the_reading_rows(order, 1));
    const auto read = sorted(rows_of(order, 1));
    BOOST_REQUIRE(read.back() < a + b);
    // Runs of three quarters are of the second source, but for one turn on each side, and for the last, short one.
    const auto second = static_cast<double>(read.end() - std::lower_bound(read.begin(), read.end(), a));
    BOOST_REQUIRE(std::abs(second - 0.75 * static_cast<double>(rows)) <= 2.0 * static_cast<double>(run));
  }
  // In a pass every row comes, whatever the runs.
  const auto order = mix_of({{103, 1}, {57, 1}}, pp::shuffled{.seed = 1, .run_rows = 10, .pool_rows = 50}, 220);
  const auto rows = rows_of(order, 0);
  for (std::uint64_t row = 0; row < 160; ++row) BOOST_TEST(std::count(rows.begin(), rows.end(), row) >= 1);
}

// Shares by arithmetic: a ratio over the sum of ratios.
BOOST_AUTO_TEST_CASE(runs_and_pools_that_nobody_asked_for_keep_the_ratio_and_leave_no_batch_of_one_source) {
  struct mix {
    std::uint64_t a, b;
    double ratio_a, ratio_b;
    pp::source_shape like;
  };
  const mix mixes[] = {
      {2000, 2000, 0.5, 0.5, {.row_bytes = 64}},
      {20'000, 20'000, 0.5, 0.5, {.row_bytes = 12}},
      {8000, 8000, 0.7, 0.3, {.row_bytes = 4096, .chunk_rows = 8000, .decoded = {{4096, 8000}}}},
      {50'000, 700, 0.9, 0.1, {.row_bytes = 784}},
      {300, 30'000, 1, 3, {.row_bytes = 64, .chunk_rows = 100, .decoded = {{64, 100}}}},
  };
  constexpr std::uint64_t batch = 256, epochs = 8;
  for (const mix& one : mixes)
    for (const std::uint64_t drawn : {one.a + one.b, (one.a + one.b) / 2 + 7}) {
      BOOST_TEST_INFO_SCOPE(one.a << " and " << one.b << " rows, " << drawn << " in an epoch");
      const auto order =
          mix_of({{one.a, one.ratio_a}, {one.b, one.ratio_b}}, pp::shuffled{.seed = 1}, drawn, {}, one.like);
      const double share = one.ratio_a / (one.ratio_a + one.ratio_b);
      double of_a = 0;
      for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
        const auto rows = rows_of(order, epoch);
        double in_epoch = 0;
        for (std::uint64_t first = 0; first + batch <= rows.size(); first += batch) {
          const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(first);
          const auto of_batch = std::count_if(begin, begin + batch, [&](std::uint64_t row) { return row < one.a; });
          BOOST_REQUIRE(of_batch > 0);
          BOOST_REQUIRE(of_batch < static_cast<std::ptrdiff_t>(batch));
        }
        for (const std::uint64_t row : rows) in_epoch += row < one.a;
        BOOST_TEST(std::abs(in_epoch / static_cast<double>(drawn) - share) < 0.08);
        of_a += in_epoch;
      }
      BOOST_TEST(std::abs(of_a / static_cast<double>(drawn * epochs) - share) < 0.01);
    }
}

// 16,000 rows are five runs of 3000 and 1000 rows: 100 and 100 of the 200 full runs of 40 epochs, 20 and 20 of the 40
// short ones.
BOOST_AUTO_TEST_CASE(the_short_run_that_ends_an_epoch_is_each_sources_by_ratio) {
  const auto order =
      mix_of({{8000, 1}, {8000, 1}}, pp::shuffled{.seed = 1, .run_rows = 3000, .pool_rows = 8000}, 16'000);
  std::uint64_t of_first = 0;
  for (std::uint64_t epoch = 0; epoch < 40; ++epoch)
    for (const std::uint64_t row : rows_of(order, epoch)) of_first += row < 8000;
  BOOST_TEST(of_first == 40u * 8000);
}

BOOST_AUTO_TEST_CASE(runs_of_which_an_epoch_has_fewer_than_there_are_sources_are_refused) {
  const auto with_run = [](std::uint64_t run) {
    return mix_of({{1000, 1}, {1000, 1}}, pp::shuffled{.seed = 1, .run_rows = run, .pool_rows = 2000}, 2000);
  };
  fails_with([&] { with_run(1001); }, "runs of 1001 rows are too long for an epoch of 2000 that mixes 2 sources");
  BOOST_TEST(with_run(1000).run_rows() == 1000u);
}

BOOST_AUTO_TEST_CASE(every_number_of_ranks_sees_the_same_rows_in_each_step_and_no_shard_is_of_one_source) {
  for (const pp::order_options& how : std::vector<pp::order_options>{
           pp::sequential{}, pp::shuffled{.seed = 7, .run_rows = 5, .pool_rows = 40}, pp::random{3}}) {
    std::map<std::uint64_t, std::vector<std::uint64_t>> steps_of[3];
    for (const std::uint64_t ranks : {1u, 2u, 4u})
      for (std::uint64_t rank = 0; rank < ranks; ++rank) {
        const auto rows =
            rows_of(mix_of({{300, 1}, {300, 1}}, how, 1000, {.shards = 4, .rank = rank, .ranks = ranks}), 1);
        for (std::size_t p = 0; p < rows.size(); ++p) steps_of[ranks / 2][p / (20 / ranks)].push_back(rows[p]);
        const auto first = std::count_if(rows.begin(), rows.end(), [](std::uint64_t row) { return row < 300; });
        BOOST_TEST(first > static_cast<std::ptrdiff_t>(rows.size() / 4));
        BOOST_TEST(first < static_cast<std::ptrdiff_t>(rows.size() * 3 / 4));
      }
    for (auto& steps : steps_of)
      for (auto& [step, rows] : steps) std::sort(rows.begin(), rows.end());
    BOOST_TEST((steps_of[0] == steps_of[1]));
    BOOST_TEST((steps_of[0] == steps_of[2]));
  }
}

BOOST_DATA_TEST_CASE(batches_hold_rows_of_each_source_with_their_values, every_device, name) {
  const small_file a(400, 64, 1), b(1000, 32);
  for (const pp::order_options& how : std::vector<pp::order_options>{
           pp::sequential{}, pp::shuffled{.seed = 7, .run_rows = 16, .pool_rows = 128}, pp::random{3}}) {
    const auto from = pp::mixed(
        {{a.all(), 0.75}, {b.all().select(pp::selection(std::vector<pp::extent>{{500, 100}})), 0.25}}, {.rows = 1600});
    auto pipeline = (pp::read(from, how) | pp::batched({.rows = 64})).build(gpu::device::parse(name), small);
    const auto rows = consume(pipeline, 0, 1);  // checks values against places in the files
    BOOST_TEST(rows.size() == 1600u);
    std::size_t of_a = 0;
    for (const std::uint64_t row : rows) {
      const auto place = pipeline.place_of("label", row);
      BOOST_REQUIRE(place.has_value());
      BOOST_REQUIRE((place->file == (row < 400 ? a : b).path().string()));
      BOOST_REQUIRE_EQUAL(place->segment, row < 400 ? 0u : 1u);
      if (row >= 400) BOOST_REQUIRE((place->row >= 500 && place->row < 600));
      of_a += row < 400;
    }
    BOOST_TEST(of_a == 1200u);
    BOOST_TEST(pipeline.row_order().description().find("2 sources mixed 0.75 : 0.25, drawn with repetition") !=
               std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(sources_that_cannot_be_mixed_are_refused) {
  const small_file a(100, 64), b(100, 64);
  const auto field = [](const small_file& file, const char* name, const char* dataset, pp::field_options how = {}) {
    return pp::source{}.field(name, file.at(dataset), how);
  };
  const auto open = [](const pp::source& from, const pp::order_options& how = {}) { pp::read(from, how).open(); };
  fails_with([&] { pp::mixed({}); }, "at least one source");
  fails_with([&] { pp::mixed({{a.all(), 0.5}, {b.all(), 0}}); }, "source 2 of a mix has the ratio 0");
  fails_with([&] { pp::mixed({{a.all(), std::nan("")}}); }, "source 1 of a mix has the ratio nan");
  fails_with([&] { pp::mixed({{pp::mixed({{a.all(), 1}}), 1}, {b.all(), 1}}); }, "source 1 of a mix is mixed itself");
  fails_with(
      [&] {
        pp::mixed({{a.all(), 1}, {b.plain(), 1}});
      },
      "need the same fields; the first has wide, label, image");
  fails_with(
      [&] {
        pp::mixed({{field(a, "x", "/wide"), 1}, {field(b, "x", "/wide", {.scale = 2}), 1}});
      },
      "field 'x' of source 2 of a mix has other options");
  fails_with([&] { open(pp::mixed({{field(a, "x", "/wide"), 1}, {field(b, "x", "/image"), 1}})); }, b.path().string());
  fails_with([&] { pp::mixed({{a.plain(), 1}}).field("more", b.at("/wide")); }, "is added to a mixed source");
  fails_with([&] { open(pp::mixed({{a.all(), 1}, {b.all(), 1}}), pp::class_balanced{}); }, "mixed by ratio are read");
  const auto none = b.all().select(pp::selection(std::vector<std::uint64_t>{}));
  fails_with([&] { open(pp::mixed({{a.all(), 1}, {none, 1}})); }, "source 2 of a mix has no row that takes part");
  // As many rows in all, but not in each source.
  const small_file c(50, 64);
  const auto twice = [&](const small_file& x, const small_file& y) {
    return pp::source{}.field("x", x.at("/wide")).field("y", y.at("/label"));
  };
  fails_with(
      [&] {
        open(pp::mixed({{twice(a, c), 1}, {twice(c, a), 1}}));
      },
      "source 1 of a mix has 100 rows in field 'x', and 50 in field 'y'");
}

BOOST_AUTO_TEST_SUITE_END()
