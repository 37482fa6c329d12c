// penstock-predict's file: rows without predictions.

#include "../../examples/predict/prediction_file.hpp"
#include "training_file.hpp"

#include <penstock/fault.hpp>
#include <penstock/io/row_reader.hpp>

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <stop_token>
#include <vector>

using namespace penstock;

namespace {

constexpr std::uint64_t rows = 200'000;
constexpr std::size_t columns = 4;  // 16 bytes: 3.05 MiB in all

/// Counts writes, and asks for a stop at the first.
struct watched_writes final : fault_injector {
  std::stop_source stop;
  std::uint64_t calls = 0, bytes = 0;
  fault before(fault_site site, std::string_view, std::uint64_t, std::size_t size) override {
    if (site != fault_site::write_file) return {};
    ++calls, bytes += size;
    stop.request_stop();
    return {};
  }
};

using parts = std::vector<examples::rows_in_a_row>;

/// The rows of parts, one by one.
std::set<std::uint64_t> each_of(const parts& all) {
  std::set<std::uint64_t> one_by_one;
  for (const auto& part : all)
    for (std::uint64_t row = part.first; row < part.first + part.count; ++row) one_by_one.insert(row);
  return one_by_one;
}

/// The same rows again, neighbours together.
parts together(const std::set<std::uint64_t>& one_by_one) {
  parts all;
  for (const std::uint64_t row : one_by_one)
    if (!all.empty() && row == all.back().first + all.back().count)
      ++all.back().count;
    else
      all.push_back({row, 1});
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(prediction_rows)

BOOST_AUTO_TEST_CASE(rows_without_predictions_are_written_in_pieces) {
  const test::scratch_folder folder;
  const auto file = folder.path("p.h5");
  const auto writes = std::make_shared<watched_writes>();
  examples::prediction_file out(file.string(), "/p", rows, columns, type::float32, false, {}, writes);
  const std::vector<float> one(rows * columns, 0.5f);
  out.write(0, rows, std::as_bytes(std::span(one)));
  writes->calls = 0;
  BOOST_TEST(out.write_none({1000, 190'000}));
  BOOST_TEST(writes->calls <= 4u);  // 190,000 rows of 16 bytes are 2.9 MiB
  out.commit("{}");
  std::vector<float> all(rows * columns);
  io::row_reader({{file, "/p"}}).read(0, rows, std::as_writable_bytes(std::span(all)));
  for (const std::uint64_t row : {0, 999, 191'000, 199'999}) BOOST_TEST(all[row * columns] == 0.5f);
  std::uint64_t none = 0;
  for (const float value : all) none += std::isnan(value) ? 1 : 0;
  BOOST_TEST(none == 190'000u * columns);
  BOOST_TEST((std::isnan(all[1000 * columns]) && std::isnan(all[191'000 * columns - 1])));
}

BOOST_AUTO_TEST_CASE(a_stop_is_answered_between_the_pieces) {
  const test::scratch_folder folder;
  const auto file = folder.path("p.h5");
  const auto writes = std::make_shared<watched_writes>();
  {
    examples::prediction_file out(file.string(), "/p", rows, columns, type::float32, false, {}, writes);
    writes->stop = {};
    writes->bytes = 0;
    BOOST_TEST(!out.write_none({0, rows}, writes->stop.get_token()));
    BOOST_TEST(writes->bytes > 0u);
    BOOST_TEST(writes->bytes <= std::uint64_t{1} << 20);
  }
  BOOST_TEST(!std::filesystem::exists(file));
}

BOOST_AUTO_TEST_CASE(rows_of_which_a_value_is_not_finite_hold_no_prediction) {
  const test::scratch_folder folder;
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> values{1, 2, inf, 0, 0, nan, 3, -inf, 4, 5, -inf, -inf};  // six rows of two
  const auto found = [&](bool classes, train::decision decision) {
    examples::prediction_file out(folder.path("p.h5").string(), "/p", 106, 2, type::float32, classes,
                                  {.decision = decision});
    return out.write(100, 6, std::as_bytes(std::span(values)));
  };
  BOOST_TEST((found(false, train::decision::none) == parts{{101, 3}, {105, 1}}));
  // Of two classes one may be impossible, and the logit of a yes infinite.
  BOOST_TEST((found(true, train::decision::largest) == parts{{101, 2}, {105, 1}}));
  BOOST_TEST((found(true, train::decision::yes_or_no) == parts{{102, 1}}));
}

BOOST_AUTO_TEST_CASE(parts_are_joined_and_taken_away_as_their_rows_are) {
  std::mt19937 random(3);
  for (int n = 0; n < 500; ++n) {
    parts one, other;
    for (parts* const each : {&one, &other})
      for (std::size_t count = random() % 5; count > 0; --count) each->push_back({random() % 30, 1 + random() % 8});
    BOOST_TEST((examples::joined(one) == together(each_of(one))));
    std::set<std::uint64_t> left = each_of(one);
    for (const std::uint64_t row : each_of(other)) left.erase(row);
    BOOST_TEST((examples::without(examples::joined(one), examples::joined(other)) == together(left)));
    BOOST_TEST(examples::count_of(examples::joined(one)) == each_of(one).size());
  }
}

BOOST_AUTO_TEST_SUITE_END()
