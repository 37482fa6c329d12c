// Which values of a source a part of a virtual dataset shows, against a count of all values one by one.

#include "projection.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace io = penstock::io;

namespace {

using place = std::vector<std::uint64_t>;
using places = std::vector<place>;  // in C order

/// Blocks along one axis, as HDF5 has them.
struct hyperslab {
  std::uint64_t start = 0, stride = 1, count = 1, block = 1;

  bool has(std::uint64_t index) const {
    for (std::uint64_t n = 0; n < count; ++n)
      if (index >= start + n * stride && index < start + n * stride + block) return true;
    return false;
  }
  std::uint64_t end() const { return start + (count - 1) * stride + block; }
};
using slabs = std::vector<hyperslab>;  // along each axis

io::selection made(const std::vector<slabs>& parts) {
  io::selection s(parts.front().size());
  for (const auto& part : parts) {
    std::vector<io::index_blocks> axes;
    for (const auto& a : part) {
      if (a.count == 1 || a.stride == a.block)
        axes.push_back({.start = a.start, .count = a.count * a.block});
      else
        axes.push_back({a.start, a.stride, a.block, a.count * a.block});
    }
    BOOST_TEST_REQUIRE(s.add(axes));
  }
  return s;
}

place extent(const std::vector<slabs>& parts) {
  place shape(parts.front().size(), 1);
  for (const auto& part : parts)
    for (std::size_t k = 0; k < part.size(); ++k) shape[k] = std::max(shape[k], part[k].end());
  return shape;
}

/// Every place of the shape is tried.
places places_of(const std::vector<slabs>& parts) {
  const auto shape = extent(parts);
  places all;
  place at(shape.size(), 0);
  for (;;) {
    for (const auto& part : parts) {
      bool in = true;
      for (std::size_t k = 0; k < at.size(); ++k) in = in && part[k].has(at[k]);
      if (in) all.push_back(at);
    }
    std::size_t k = at.size();
    while (k > 0 && ++at[k - 1] == shape[k - 1]) at[--k] = 0;
    if (k == 0) return all;
  }
}

struct chance {
  std::mt19937 random;

  std::uint64_t below(std::uint64_t n) { return random() % n; }

  std::uint64_t divisor(std::uint64_t n) {
    std::vector<std::uint64_t> all;
    for (std::uint64_t d = 1; d <= n; ++d)
      if (n % d == 0) all.push_back(d);
    return all[below(all.size())];
  }

  /// Blocks that hold `n` indices.
  hyperslab of(std::uint64_t n) {
    hyperslab a{.start = below(3), .block = divisor(n)};
    a.count = n / a.block;
    a.stride = a.block + below(3);
    return a;
  }

  /// Of such lengths, with axes of one index between them.
  slabs product(std::vector<std::uint64_t> lengths) {
    for (auto ones = below(3); ones > 0; --ones)
      lengths.insert(lengths.begin() + static_cast<std::ptrdiff_t>(below(lengths.size() + 1)), 1);
    slabs axes;
    for (const auto n : lengths) axes.push_back(of(n));
    return axes;
  }

  /// Lengths along three axes at most that make `n` values.
  std::vector<std::uint64_t> lengths_of(std::uint64_t n) {
    const auto first = divisor(n), second = divisor(n / first);
    std::vector<std::uint64_t> lengths{first, second, n / first / second};
    std::erase(lengths, 1u);
    if (lengths.empty()) lengths.push_back(1);
    return lengths;
  }

  /// Boxes of so many values, each beside or below another, in two axes.
  std::vector<slabs> boxes_of(std::uint64_t n) {
    std::vector<slabs> parts;
    for (std::uint64_t row = below(3); n > 0;) {
      const auto rows = 1 + below(3);
      std::uint64_t column = below(3);
      for (auto beside = 1 + below(3); beside > 0 && n > 0; --beside) {
        const auto columns = 1 + below(4), high = std::min(rows, std::max<std::uint64_t>(n / columns, 1));
        const auto wide = std::min(columns, n / high);
        const auto down = below(rows - high + 1);
        parts.push_back({{.start = row + down, .block = high}, {.start = column, .block = wide}});
        column += wide + below(2);
        n -= high * wide;
      }
      row += rows + below(2);
    }
    return parts;
  }

  io::box part_of(const place& shape) {
    io::box b;
    b.rank = shape.size();
    for (std::size_t k = 0; k < b.rank; ++k) {
      const bool whole = below(3) == 0;
      b.start[k] = whole ? 0 : below(shape[k]);
      b.count[k] = whole ? shape[k] : 1 + below(shape[k] - b.start[k]);
    }
    return b;
  }
};

bool holds(const io::box& b, const place& at) {
  for (std::size_t k = 0; k < at.size(); ++k)
    if (at[k] < b.start[k] || at[k] - b.start[k] >= b.count[k]) return false;
  return true;
}

/// Each box of a unit of so many indices along each axis, by its first place.
std::multiset<place> units_of(const std::vector<io::lattice>& found, std::uint64_t unit, const place& shape) {
  io::extents units{}, all{};
  units.fill(unit);
  std::copy(shape.begin(), shape.end(), all.begin());
  std::multiset<place> seen;
  for (const auto& part : found)
    io::visit_boxes(part, units, all, [&](const io::box& b) {
      place at(b.start.begin(), b.start.begin() + static_cast<std::ptrdiff_t>(b.rank));
      for (std::size_t k = 0; k < b.rank; ++k) {
        BOOST_TEST(b.start[k] % unit == 0u);
        BOOST_TEST(((b.start[k] + b.count[k]) % unit == 0u || b.start[k] + b.count[k] == shape[k]));
      }
      for (;;) {
        seen.insert(at);
        std::size_t k = b.rank;
        for (; k > 0; --k) {
          at[k - 1] += unit;
          if (at[k - 1] < b.start[k - 1] + b.count[k - 1]) break;
          at[k - 1] = b.start[k - 1];
        }
        if (k == 0) return;
      }
    });
  return seen;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(projection)

BOOST_AUTO_TEST_CASE(a_part_of_a_mapping_shows_the_values_that_counting_says_and_no_others) {
  chance draw{std::mt19937(7)};
  std::map<std::string, int> tried;
  for (int n = 0; n < 4000; ++n) BOOST_TEST_CONTEXT("draw " << n) {
      const bool irregular_target = draw.below(3) == 0, irregular_source = draw.below(3) == 0;
      const auto values = 1 + draw.below(60);
      const auto lengths = draw.lengths_of(values);
      const auto target = irregular_target ? draw.boxes_of(values) : std::vector<slabs>{draw.product(lengths)};
      const auto there = draw.below(4) == 0 ? 1 + draw.below(60) : values;
      const bool alike = there == values && draw.below(2) == 0;
      const auto from = irregular_source ? draw.boxes_of(there)
                                         : std::vector<slabs>{draw.product(alike ? lengths : draw.lengths_of(there))};
      const auto shown = places_of(target), stored = places_of(from);
      BOOST_TEST_REQUIRE((shown.size() == values && stored.size() == there));
      const auto mapped = made(target), source = made(from);
      BOOST_TEST((mapped.size() == values && source.size() == there));
      const auto wanted = draw.part_of(extent(target));
      const auto shape = extent(from);
      std::multiset<place> expected;
      std::set<place> expected_units;
      constexpr std::uint64_t unit = 3;
      for (std::size_t v = 0; v < std::min(shown.size(), stored.size()); ++v) {
        if (!holds(wanted, shown[v])) continue;
        expected.insert(stored[v]);
        auto first = stored[v];
        for (auto& index : first) index = index / unit * unit;
        expected_units.insert(first);
      }
      std::vector<io::lattice> found;
      BOOST_TEST(io::project(mapped, wanted, source, [&](const io::lattice& part) { found.push_back(part); }));
      BOOST_TEST((units_of(found, 1, shape) == expected));  // each once
      if (!irregular_target && !irregular_source && alike) BOOST_TEST(found.size() <= 1u);
      const auto units = units_of(found, unit, shape);
      BOOST_TEST((std::set<place>(units.begin(), units.end()) == expected_units));
      ++tried[std::string(irregular_target ? "irregular" : "regular") +
              (irregular_source ? ", irregular" : ", regular")];
      tried["fewer than shown"] += there < values;
      tried["more than shown"] += there > values;
      tried["nothing shown"] += expected.empty();
      tried["a part shown"] += !expected.empty() && expected.size() < shown.size();
    }
  for (const auto& [what, times] : tried) BOOST_TEST(times > 200, what << ": " << times);
  BOOST_TEST(tried.size() == 8u);
}

BOOST_AUTO_TEST_CASE(numbers_that_no_selection_can_have_are_refused_or_not_counted) {
  constexpr auto endless = io::index_blocks::endless;
  io::selection s(2);
  const auto adds = [&](io::index_blocks first) { return s.add(std::vector<io::index_blocks>{first, {.count = 2}}); };
  BOOST_TEST(!adds({.start = 1, .count = endless}));
  BOOST_TEST(!adds({.start = endless, .count = 1}));
  BOOST_TEST(!adds({.stride = std::uint64_t{1} << 40, .block = 1, .count = std::uint64_t{1} << 30}));
  BOOST_TEST(!adds({.stride = 1, .block = 2, .count = 2}));
  BOOST_TEST(!adds({.stride = 0, .block = 0, .count = 2}));
  BOOST_TEST(s.parts() == 0u);
  BOOST_TEST(s.size().value() == 0u);
  BOOST_TEST(adds({.start = 5, .count = endless - 6}));
  BOOST_TEST(!s.size().has_value());  // 2 (2^64 - 7)
  io::selection halves(1);
  for (const std::uint64_t start : {0u, 1u})
    BOOST_TEST(halves.add(std::vector<io::index_blocks>{{.start = start, .count = std::uint64_t{1} << 63}}));
  BOOST_TEST(!halves.size().has_value());  // 2^64
}

/// Whole rows of irregular selections follow each other; single values of them are as many runs.
BOOST_AUTO_TEST_CASE(what_would_take_too_long_to_follow_is_not_followed) {
  constexpr std::uint64_t rows = 1 << 20;
  const auto s = made({{{.block = rows}, {.block = 8}}, {{.start = 2 * rows, .block = rows}, {.block = 8}}});
  std::vector<io::box> found;
  const auto visit = [&](const io::lattice& part) {
    io::extents unit{}, shape{};
    unit.fill(1);
    shape.fill(4 * rows);
    io::visit_boxes(part, unit, shape, [&](const io::box& b) { found.push_back(b); });
  };
  io::box wanted;
  wanted.rank = 2;
  wanted.count = {4 * rows, 8};
  BOOST_TEST(io::project(s, wanted, s, visit));
  std::uint64_t values = 0;
  for (const auto& b : found) values += b.values();
  BOOST_TEST(values == 2 * rows * 8);
  BOOST_TEST(found.size() < 8u);
  found.clear();
  wanted.count[1] = 1;
  BOOST_TEST(!io::project(s, wanted, s, visit));
  BOOST_TEST(found.empty());
  wanted.count[0] = 3;
  BOOST_TEST(io::project(s, wanted, s, visit));
  BOOST_TEST(found.size() == 3u);
}

BOOST_AUTO_TEST_SUITE_END()
