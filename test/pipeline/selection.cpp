#include <penstock/pipeline/selection.hpp>

#include "small_file.hpp"

#include <penstock/io/error.hpp>
#include <penstock/io/writer.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <set>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
namespace data = boost::unit_test::data;
using namespace penstock::literals;
using penstock::test::consume;
using penstock::test::small_file;

namespace {

const auto every_device = data::make(penstock::test::devices());
const gpu::budget small{.device_bytes = 8_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB};

std::vector<std::uint64_t> rows_of(const small_file& file, pp::selection which,
                                   pp::order_options how = pp::sequential{}, const std::string& device = "host") {
  auto pipeline = (pp::read(file.all().select(std::move(which)), how) | pp::batched({.rows = 50}))
                      .build(gpu::device::parse(device), small);
  return consume(pipeline, 0, 1);
}

std::vector<std::uint64_t> sorted(std::vector<std::uint64_t> rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

const auto orders = data::make(std::vector<int>{0, 1, 2});
pp::order_options order_number(int n) {
  if (n == 0) return pp::sequential{};
  if (n == 1) return pp::shuffled{.seed = 3, .run_rows = 20, .pool_rows = 200};
  return pp::random{.seed = 3};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(selections)

BOOST_DATA_TEST_CASE(chosen_rows_come_once_in_every_order_and_with_their_values, every_device* orders, name, how) {
  const small_file file(3001, 128, 2);
  std::mt19937 random(static_cast<unsigned>(how));
  std::vector<std::uint64_t> chosen;
  for (std::uint64_t row = 0; row < 3001; ++row)
    if (random() % 3 == 0 || (row > 900 && row < 1700)) chosen.push_back(row);
  const auto expected = chosen;
  std::shuffle(chosen.begin(), chosen.end(), random);
  const auto rows = rows_of(file, pp::selection(chosen), order_number(how), name);
  BOOST_TEST(sorted(rows) == expected);
  if (how == 0) BOOST_TEST(rows == expected);
  if (how != 0) BOOST_TEST(rows != expected);
}

BOOST_AUTO_TEST_CASE(ranges_may_overlap_and_touch_both_ends) {
  const small_file file(1000, 64);
  const auto rows = rows_of(file, pp::selection(std::vector<pp::extent>{{990, 10}, {0, 3}, {2, 5}, {64, 0}}));
  BOOST_TEST(rows ==
             (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 990, 991, 992, 993, 994, 995, 996, 997, 998, 999}));
}

BOOST_AUTO_TEST_CASE(conditions_look_at_the_values_of_a_field) {
  const small_file file(1000, 64);  // a row's label is its number
  const auto rows = rows_of(file, pp::where("label", [](double label) { return std::fmod(label, 100) == 7; }));
  BOOST_TEST(rows == (std::vector<std::uint64_t>{7, 107, 207, 307, 407, 507, 607, 707, 807, 907}));
  const auto both = rows_of(file, pp::where("label", [](double label) { return std::fmod(label, 100) == 7; }) &
                                      pp::selection(std::vector<pp::extent>{{200, 400}}));
  BOOST_TEST(both == (std::vector<std::uint64_t>{207, 307, 407, 507}));
}

BOOST_AUTO_TEST_CASE(the_parts_of_a_split_hold_every_row_once) {
  const small_file file(5000, 64);
  const pp::split how{.validation = 0.2, .seed = 11};
  const auto training = rows_of(file, pp::training_part(how)), validation = rows_of(file, pp::validation_part(how));
  auto both = training;
  both.insert(both.end(), validation.begin(), validation.end());
  std::vector<std::uint64_t> all(5000);
  for (std::uint64_t row = 0; row < 5000; ++row) all[row] = row;
  BOOST_TEST(sorted(both) == all);
  // 1000 are expected, with a standard deviation of sqrt(5000 * 0.2 * 0.8) = 28.
  BOOST_TEST(std::abs(static_cast<double>(validation.size()) - 1000) < 5 * 28.3);
  BOOST_TEST(rows_of(file, pp::validation_part({.validation = 0.2, .seed = 12})) != validation);
  BOOST_TEST(rows_of(file, pp::validation_part({.validation = 1})).size() == 5000u);
  BOOST_TEST(rows_of(file, pp::training_part({.validation = 0})).size() == 5000u);
}

BOOST_AUTO_TEST_CASE(groups_are_never_on_both_sides_of_a_split) {
  const small_file file(3000, 64);  // an image of row r begins with r * 12 modulo 251: 251 groups
  const pp::split how{.validation = 0.3, .seed = 1, .group = "image"};
  const auto group = [](std::uint64_t row) { return row * 12 % 251; };
  std::set<std::uint64_t> training, validation;
  for (const auto row : rows_of(file, pp::training_part(how))) training.insert(group(row));
  for (const auto row : rows_of(file, pp::validation_part(how))) validation.insert(group(row));
  BOOST_TEST(training.size() + validation.size() == 251u);
  for (const auto one : validation) BOOST_TEST(!training.contains(one));
  // 75 are expected, with a standard deviation of sqrt(251 * 0.3 * 0.7) = 7.3.
  BOOST_TEST(std::abs(static_cast<double>(validation.size()) - 75.3) < 5 * 7.3);
}

// Groups of float64: 0 and -0, and two NaNs of different bits, are each one group; 1 is another.
BOOST_AUTO_TEST_CASE(floats_of_one_value_are_one_group) {
  const auto path = std::filesystem::temp_directory_path() / ("penstock-groups-" + std::to_string(::getpid()) + ".h5");
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> values{0.0, -0.0, nan, -nan, std::bit_cast<double>(std::bit_cast<std::uint64_t>(nan) | 5),
                                   1};
  penstock::io::writer file(path);
  file.create("/group", penstock::type::float64, {values.size()}, {});
  file.write_rows("/group", 0, values.size(), std::as_bytes(std::span(values)));
  file.commit();
  std::size_t apart = 0;
  for (std::uint64_t seed = 0; seed < 32; ++seed) {
    const auto from = pp::source{}.field("group", penstock::io::datasets(path.string(), "/group"));
    auto part = from;
    part.select(pp::validation_part({.validation = 0.5, .seed = seed, .group = "group"}));
    std::set<std::uint64_t> chosen;
    const auto opened = pp::read(part).open();
    for (std::uint64_t p = 0; p < opened.rows(); ++p) chosen.insert(opened.row_order().row(0, p));
    BOOST_TEST(chosen.contains(0) == chosen.contains(1));
    BOOST_TEST(chosen.contains(2) == chosen.contains(3));
    BOOST_TEST(chosen.contains(2) == chosen.contains(4));
    apart += chosen.contains(0) != chosen.contains(5);
  }
  BOOST_TEST(apart > 0u);
  std::filesystem::remove(path);
}

BOOST_AUTO_TEST_CASE(a_selection_of_no_rows_is_an_epoch_without_batches) {
  const small_file file(100);
  BOOST_TEST(rows_of(file, pp::where("label", [](double) { return false; })).empty());
  BOOST_TEST(rows_of(file, pp::selection(std::vector<std::uint64_t>{}), pp::shuffled{}).empty());
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_the_source_is_refused_with_both_sides) {
  const small_file file(100);
  const auto fails_with = [&](pp::selection which, const std::string& part) {
    BOOST_CHECK_EXCEPTION(rows_of(file, std::move(which)), std::invalid_argument,
                          [&](const auto& e) { return std::string(e.what()).find(part) != std::string::npos; });
  };
  fails_with(pp::selection(std::vector<pp::extent>{{90, 20}}), "rows 90 to 109 are selected of a source of 100 rows");
  fails_with(pp::selection(std::vector<pp::extent>{{5, ~std::uint64_t{0}}}), "rows 5 to 18446744073709551615");
  fails_with(pp::selection(std::vector<std::uint64_t>{100}), "rows 100 to 100");
  for (const std::uint64_t told : {0u, 99u, 101u})
    fails_with(pp::selection(std::vector<std::uint64_t>{}, told),
               "a mask of " + std::to_string(told) + " rows, and the source has 100");
  BOOST_TEST(rows_of(file, pp::selection(std::vector<std::uint64_t>{7}, 100)).size() == 1u);
  fails_with(pp::where("weight", [](double) { return true; }), "field 'weight', which the source does not have");
  fails_with(pp::where("image", [](double) { return true; }), "12 numbers in a row; it needs one");
  BOOST_CHECK_THROW(pp::training_part({.validation = 1.5}), std::invalid_argument);
  BOOST_CHECK_THROW(pp::where("label", nullptr), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(the_plan_holds_the_memory_of_a_selection) {
  const small_file file(64 * 1024, 1024);
  const auto plan = pp::read(file.plain().select(pp::selection(std::vector<pp::extent>{{0, 10}})))
                        .open()
                        .plan(gpu::device::host(), small);
  std::size_t bytes = 0;
  for (const auto& item : plan.ledger.items())
    if (item.name == "pipeline: rows that take part") bytes = item.bytes;
  // One bit a row, and 8 bytes for every 512 rows, and 8 at the end.
  BOOST_TEST(bytes == 64 * 1024 / 8 + 64 * 1024 / 512 * 8 + 8u);
}

BOOST_AUTO_TEST_SUITE_END()
