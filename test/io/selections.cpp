// Another row axis, and parts of the other axes, on every path.

#include <penstock/io/location.hpp>

#include "made_files.hpp"

#include <penstock/io/file.hpp>
#include <penstock/io/row_reader.hpp>

#include <boost/test/unit_test.hpp>

#include <map>
#include <random>

namespace io = penstock::io;
using namespace penstock::io::test;

namespace {

/// A dataset's values as they were written, picked out one by one.
struct picked {
  std::vector<std::uint64_t> shape;
  std::size_t value_bytes = 0;
  std::vector<std::byte> all;

  std::vector<std::byte> rows(const io::location& where, std::uint64_t first, std::uint64_t count) const {
    std::vector<std::uint64_t> start(shape.size(), 0), counts = shape;
    for (const auto& r : where.region) {
      start[r.axis] = r.first;
      counts[r.axis] = r.count;
    }
    start[where.row_axis] = first;
    counts[where.row_axis] = count;
    std::vector<std::size_t> axes{where.row_axis};
    for (std::size_t k = 0; k < shape.size(); ++k)
      if (k != where.row_axis) axes.push_back(k);
    std::vector<std::byte> out;
    std::vector<std::uint64_t> at(shape.size(), 0);
    pick(axes, 0, start, counts, at, out);
    return out;
  }

 private:
  void pick(const std::vector<std::size_t>& axes, std::size_t depth, const std::vector<std::uint64_t>& start,
            const std::vector<std::uint64_t>& counts, std::vector<std::uint64_t>& at,
            std::vector<std::byte>& out) const {
    if (depth == axes.size()) {
      std::uint64_t place = 0;
      for (std::size_t k = 0; k < shape.size(); ++k) place = place * shape[k] + at[k];
      const auto* value = all.data() + place * value_bytes;
      out.insert(out.end(), value, value + value_bytes);
      return;
    }
    const auto axis = axes[depth];
    for (std::uint64_t n = 0; n < counts[axis]; ++n) {
      at[axis] = start[axis] + n;
      pick(axes, depth + 1, start, counts, at, out);
    }
  }
};

/// A location whose rows are counted along `axis`; of every other axis a part, or all.
io::location part_of(const made_dataset& d, const picked& values, std::size_t axis, std::mt19937_64& random) {
  io::location where{made_folder() / d.file, d.dataset, axis, {}};
  for (std::size_t k = 0; k < values.shape.size(); ++k) {
    if (k == axis || random() % 4 == 0) continue;
    const auto first = random() % values.shape[k];
    where.region.push_back({.axis = k, .first = first, .count = 1 + random() % (values.shape[k] - first)});
  }
  return where;
}

void compare(const made_dataset& d, const picked& values, const io::location& where, std::mt19937_64& random) {
  for (const bool around : {false, true}) {
    io::row_reader reader({where}, {.around_page_cache = around});
    reader.reserve({.concurrency = 1, .cache_bytes = reader.cut_bytes()});
    BOOST_TEST(reader.rows() == values.shape[where.row_axis]);
    BOOST_TEST(io::name_of(reader.segments()[0].info.access) == d.access);
    for (int n = 0; n < 3; ++n) {
      const auto first = n == 0 ? 0 : random() % reader.rows();
      const auto count = n == 0 ? reader.rows() : 1 + random() % (reader.rows() - first);
      std::vector<std::byte> got(count * reader.row_bytes());
      reader.read(first, count, got);
      BOOST_TEST((got == values.rows(where, first, count)));
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(selections)

BOOST_AUTO_TEST_CASE(any_axis_counts_rows_and_any_part_of_the_others_is_read_on_every_path) {
  std::map<std::string, int> compared;
  std::mt19937_64 random(5);
  for (const auto& d : made_datasets()) {
    const auto info = io::row_reader({{made_folder() / d.file, d.dataset}}).segments()[0].info;
    if (info.shape.size() < 2 || d.rows == 0 || d.row_bytes == 0) continue;
    picked values{info.shape, 0, bytes_of_file(d.expected)};
    std::uint64_t count = 1;
    for (const auto extent : info.shape) count *= extent;
    values.value_bytes = values.all.size() / count;
    for (std::size_t axis = 0; axis < info.shape.size(); ++axis) {
      const auto where = part_of(d, values, axis, random);
      BOOST_TEST_CONTEXT(d.name() << ", rows along axis " << axis) { compare(d, values, where, random); }
    }
    const bool external = info.reason.find("external") != std::string::npos;
    ++compared[std::string(name_of(info.layout)) + (external ? ", external" : "") +
               (info.filters.empty() ? "" : ", filtered") + (info.path.ends_with(']') ? ", a member" : "") + ": " +
               d.access];
  }
  for (const char* path :
       {"contiguous: direct", "contiguous, external: direct", "contiguous: locked", "compact: staged",
        "chunked: direct", "chunked, filtered: direct", "chunked, filtered: locked",
        "chunked, filtered, a member: direct", "virtual: direct", "virtual: locked"})
    BOOST_TEST(compared[path] > 0, path);
}

BOOST_AUTO_TEST_SUITE_END()
