// Chunks of sources that libhdf5 must not read, behind every kind of mapping of a virtual dataset that it reads.

#include "made_files.hpp"

#include <penstock/config.hpp>
#include <penstock/fault.hpp>
#include <penstock/io/error.hpp>
#include <penstock/io/row_reader.hpp>

#include <boost/test/unit_test.hpp>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace io = penstock::io;
namespace fs = std::filesystem;
using namespace penstock::io::test;

namespace {

const fs::path& checked_folder() {
  static const auto folder = [] {
    const auto path = made_folder() / "checked_sources";
    fs::create_directories(path);
    const std::string command =
        "/usr/bin/python3 '" PENSTOCK_TEST_IO_SOURCE "/checked_sources.py' '" + path.string() + "'";
    if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
    return path;
  }();
  return folder;
}

std::vector<std::string> names() {
  std::ifstream list(checked_folder() / "names.txt");
  std::vector<std::string> all;
  for (std::string name; list >> name;) all.push_back(name);
  return all;
}

/// The dataset /x of a file, and what h5py gave for it before a chunk of its source was damaged.
struct checked_source {
  explicit checked_source(const std::string& name)
      : where{.file = checked_folder() / (name + ".h5"), .dataset = "/x"},
        reader({where}, allow),
        expected(bytes_of_file(checked_folder() / (name + ".bytes"))),
        damaged(rows_in(name + ".rows")) {
    BOOST_TEST_REQUIRE(expected.size() == reader.rows() * reader.row_bytes());
  }

  static std::set<std::uint64_t> rows_in(const std::string& file) {
    std::ifstream list(checked_folder() / file);
    std::set<std::uint64_t> rows;
    for (std::uint64_t row = 0; list >> row;) rows.insert(row);
    return rows;
  }

  inline static const io::read_options allow{.allow_missing_sources = true};
  io::location where;
  io::row_reader reader;
  std::vector<std::byte> expected;
  std::set<std::uint64_t> damaged;
};

/// The rows, or nothing where they are refused as damaged, by their numbers.
std::optional<std::vector<std::byte>> read(const io::row_reader& reader, std::uint64_t first, std::uint64_t count) {
  std::vector<std::byte> out(count * reader.row_bytes());
  try {
    reader.read(first, count, out);
    return out;
  } catch (const io::error& e) {
    const std::string text = e.what();
    const auto& context = e.context();
    if (!context.damaged || context.rows.first != first || context.rows.count != count ||
        text.find("a filter makes more than") == std::string::npos)
      throw;
    return std::nullopt;
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(checked_sources)

#if PENSTOCK_HAS_LIBDEFLATE
BOOST_AUTO_TEST_CASE(rows_that_show_a_damaged_chunk_of_a_source_are_refused_and_no_others) {
  for (const auto& name : names()) BOOST_TEST_CONTEXT(name) {
      const checked_source x(name);
      const auto& info = x.reader.segments()[0].info;
      BOOST_TEST((info.access == io::access::locked), info.reason);
      const auto rows = x.reader.rows(), bytes = std::uint64_t{x.reader.row_bytes()};
      for (std::uint64_t row = 0; row < rows; ++row) {
        const auto found = read(x.reader, row, 1);
        BOOST_TEST(found.has_value() != x.damaged.contains(row), "row " << row);
        if (found) BOOST_TEST(std::memcmp(found->data(), x.expected.data() + row * bytes, bytes) == 0, "row " << row);
      }
      const auto first = x.damaged.empty() ? rows : *x.damaged.begin();
      const auto sound = read(x.reader, 0, first);
      BOOST_TEST_REQUIRE(sound.has_value());
      BOOST_TEST(std::memcmp(sound->data(), x.expected.data(), sound->size()) == 0);
      if (first < rows) BOOST_TEST(!read(x.reader, 0, first + 1).has_value());
    }
}

/// What is not asked for need not be there to be read.
BOOST_AUTO_TEST_CASE(a_source_that_is_not_shown_is_not_opened) {
  struct no_place_for final : penstock::fault_injector {
    penstock::fault before(penstock::fault_site site, std::string_view what, std::uint64_t, std::size_t) override {
      return {.error = armed && site == penstock::fault_site::open_file && what.ends_with(".3") ? EMFILE : 0};
    }
    bool armed = false;
  };
  const checked_source x("files_in_turns");  // rows of files .0 and .3 by turns
  const auto faults = std::make_shared<no_place_for>();
  const io::row_reader reader({x.where}, {.faults = faults});
  std::vector<std::byte> row(reader.row_bytes());
  faults->armed = true;
  reader.read(2, 1, row);
  BOOST_TEST(std::memcmp(row.data(), x.expected.data() + 2 * row.size(), row.size()) == 0);
  BOOST_CHECK_EXCEPTION(reader.read(3, 1, row), io::error,
                        [](const io::error& e) { return e.context().system == EMFILE && !e.context().damaged; });
  faults->armed = false;
  reader.read(3, 1, row);
  BOOST_TEST(std::memcmp(row.data(), x.expected.data() + 3 * row.size(), row.size()) == 0);
}

/// Of the other axes, too, chunks that are not asked for are no reason to refuse.
BOOST_AUTO_TEST_CASE(a_part_of_the_other_axes_shows_what_lies_there) {
  int kinds = 0;
  for (const auto& name : names()) BOOST_TEST_CONTEXT(name) {
      std::ifstream part(checked_folder() / (name + ".part"));
      io::axis_range some;
      part >> some.axis >> some.count;
      if (some.axis == 0) continue;  // its rows
      std::set<std::uint64_t> damaged;
      for (std::uint64_t row = 0; part >> row;) damaged.insert(row);
      auto where = checked_source(name).where;
      where.region = {some};
      const io::row_reader reader({where}, checked_source::allow);
      for (std::uint64_t row = 0; row < reader.rows(); ++row)
        BOOST_TEST(read(reader, row, 1).has_value() != damaged.contains(row), "row " << row);
      BOOST_TEST(read(reader, 0, reader.rows()).has_value() == damaged.empty());
      ++kinds;
    }
  BOOST_TEST(kinds == 22);
}
#endif

/// A source that has grown since it was mapped may have more chunks than anybody lives to look at.
BOOST_AUTO_TEST_CASE(of_a_source_that_has_grown_no_more_chunks_are_looked_at_than_are_shown) {
  struct counted_chunks final : penstock::fault_injector {
    penstock::fault before(penstock::fault_site site, std::string_view, std::uint64_t, std::size_t) override {
      reads += site == penstock::fault_site::read_file;
      return {};
    }
    int reads = 0;
  };
  const auto values_of = [](const std::string& name, const std::shared_ptr<counted_chunks>& count) {
    const io::row_reader reader({{.file = checked_folder() / "many.h5", .dataset = "/" + name}}, {.faults = count});
    BOOST_TEST((reader.segments()[0].info.access == io::access::locked));
    std::vector<std::byte> values(10 * reader.row_bytes());
    count->reads = 0;
    reader.read(0, 10, values);
    BOOST_TEST((values == bytes_of_file(checked_folder() / ("many_" + name + ".bytes"))), name);
    return count->reads;
  };
  const auto count = std::make_shared<counted_chunks>();
  BOOST_TEST_REQUIRE(values_of("grown", count) < 100);
  BOOST_TEST(values_of("far", count) < 100);
}

BOOST_AUTO_TEST_CASE(where_it_cannot_be_told_which_of_too_many_chunks_are_shown_reading_is_refused) {
  const auto column_of = [](const char* name) {
    const io::axis_range first{.axis = 1, .count = 1};
    return io::row_reader({{.file = checked_folder() / "many.h5", .dataset = name, .region = {first}}});
  };
  const auto expected = bytes_of_file(checked_folder() / "many_scattered_less.bytes");
  const auto less = column_of("/scattered_less"), more = column_of("/scattered");
  std::vector<std::byte> values(2000 * less.row_bytes());
  less.read(0, 2000, values);
  BOOST_TEST((values == expected));
  BOOST_CHECK_EXCEPTION(more.read(0, 2000, values), io::error, [](const io::error& e) {
    return !e.context().damaged && std::string(e.what()).find("more than 131072 chunks") != std::string::npos;
  });
  values.resize(10 * more.row_bytes());  // of so few it can
  more.read(0, 10, values);
  BOOST_TEST(std::memcmp(values.data(), expected.data(), values.size()) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
