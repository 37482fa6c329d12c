#include <penstock/io/value_options.hpp>

#include "made_files.hpp"

#include <penstock/io/error.hpp>
#include <penstock/io/row_reader.hpp>

#include <boost/test/unit_test.hpp>

#include <cstring>
#include <fstream>
#include <sstream>

namespace io = penstock::io;
using namespace penstock::io::test;
using penstock::type;

namespace {

struct made_conversion {
  std::string file, dataset, conversion;
  std::filesystem::path expected;
};

std::vector<made_conversion> made_conversions() {
  std::vector<made_conversion> found;
  std::ifstream list(made_folder() / "values.txt");
  for (std::string line; std::getline(list, line);) {
    std::istringstream fields(line);
    made_conversion c;
    std::string expected;
    std::getline(fields, c.file, '\t');
    std::getline(fields, c.dataset, '\t');
    std::getline(fields, c.conversion, '\t');
    std::getline(fields, expected, '\t');
    c.expected = made_folder() / expected;
    found.push_back(std::move(c));
  }
  return found;
}

io::value_options options_of(const std::string& conversion) {
  if (conversion == "native") return {.native_order = true};
  if (conversion == "netcdf") return {.netcdf = true};
  return {.as = penstock::parse_type(conversion)};
}

io::row_reader open(const std::string& file, const std::string& dataset, const io::value_options& values) {
  return io::row_reader({{.file = made_folder() / file, .dataset = dataset}}, {.values = values});
}

std::vector<std::byte> rows_of(const io::row_reader& reader, std::uint64_t piece) {
  std::vector<std::byte> all(reader.rows() * reader.row_bytes());
  for (std::uint64_t first = 0; first < reader.rows(); first += piece) {
    const auto count = std::min(piece, reader.rows() - first);
    reader.read(first, count, std::span(all).subspan(first * reader.row_bytes(), count * reader.row_bytes()));
  }
  return all;
}

/// The same bits, but that every NaN is as good as another.
template <class T>
bool same_values(std::span<const std::byte> a, std::span<const std::byte> b) {
  if (a.size() != b.size()) return false;
  for (std::size_t at = 0; at + sizeof(T) <= a.size(); at += sizeof(T)) {
    T x, y;
    std::memcpy(&x, a.data() + at, sizeof(T));
    std::memcpy(&y, b.data() + at, sizeof(T));
    if (std::memcmp(&x, &y, sizeof(T)) != 0 && !(x != x && y != y)) return false;
  }
  return true;
}

bool same(const io::row_reader& reader, std::span<const std::byte> got, std::span<const std::byte> expected) {
  if (reader.element().element == type::float32) return same_values<float>(got, expected);
  if (reader.element().element == type::float64) return same_values<double>(got, expected);
  return std::equal(got.begin(), got.end(), expected.begin(), expected.end());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(value_options)

BOOST_AUTO_TEST_CASE(values_are_what_numpy_makes_of_them_in_pieces_of_any_size) {
  const auto all = made_conversions();
  BOOST_TEST(all.size() > 50);
  for (const auto& c : all) {
    BOOST_TEST_CONTEXT(c.file << ":" << c.dataset << " as " << c.conversion) {
      const auto reader = open(c.file, c.dataset, options_of(c.conversion));
      BOOST_TEST(!reader.element().swapped);
      const auto expected = bytes_of_file(c.expected);
      for (const std::uint64_t piece : {std::uint64_t{1} << 20, std::uint64_t{37}})
        BOOST_TEST(same(reader, rows_of(reader, piece), expected));
    }
  }
}

BOOST_AUTO_TEST_CASE(rows_and_memory_are_those_of_the_type_that_was_asked_for) {
  const auto scratch = [](const io::row_reader& reader) {
    std::size_t bytes = 0;
    for (const auto& item : reader.memory({})) bytes += item.name == "read scratch" ? item.bytes : 0;
    return bytes;
  };
  const auto plain = open("values.h5", "/long_f8_plain", {});
  BOOST_TEST(plain.row_bytes() == 800);
  const auto reader = open("values.h5", "/long_f8_plain", {.as = type::float32});
  BOOST_TEST(reader.row_bytes() == 400);
  BOOST_TEST(reader.element().numpy == "<f4");
  BOOST_TEST(scratch(reader) > scratch(plain));
  std::vector<float> row(100);
  reader.read(1, 1, std::as_writable_bytes(std::span(row)));
  BOOST_TEST(row[5] == 35);  // 105 // 3
}

BOOST_AUTO_TEST_CASE(masked_values_become_what_was_asked_for) {
  const auto plain = open("netcdf.h5", "/temperature", {});
  const auto reader = open("netcdf.h5", "/temperature", {.as = type::float64, .netcdf = true, .masked = -1});
  std::vector<std::int16_t> stored(plain.rows() * 300);
  std::vector<double> got(stored.size());
  plain.read(0, plain.rows(), std::as_writable_bytes(std::span(stored)));
  reader.read(0, reader.rows(), std::as_writable_bytes(std::span(got)));
  std::size_t masked = 0, wrong = 0;
  for (std::size_t n = 0; n < got.size(); ++n) {
    masked += stored[n] == -32767;
    wrong += got[n] != (stored[n] == -32767 ? -1.0 : stored[n] * 0.01 + 273.15);
  }
  BOOST_TEST(masked > 0);
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(every_segment_is_unpacked_by_its_own_attributes) {
  const auto file = made_folder() / "netcdf.h5";
  const io::row_reader reader({{.file = file, .dataset = "/temperature"}, {.file = file, .dataset = "/nothing"}},
                              {.values = {.netcdf = true, .masked = 0}});
  std::vector<float> first(300), other(300);
  reader.read(0, 1, std::as_writable_bytes(std::span(first)));
  reader.read(500, 1, std::as_writable_bytes(std::span(other)));
  std::size_t wrong = 0;
  for (std::size_t n = 0; n < first.size(); ++n) {
    const double packed = other[n];
    wrong += first[n] != (packed == -32767 ? 0.0f : static_cast<float>(packed * 0.01 + 273.15));
  }
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(what_cannot_become_a_number_is_refused_with_its_reason) {
  const auto refused = [](const std::string& dataset, const io::value_options& values, const std::string& why) {
    BOOST_CHECK_EXCEPTION(open("netcdf.h5", dataset, values), io::error, [&](const io::error& e) {
      return std::string(e.what()).find(why) != std::string::npos && e.context().dataset == dataset;
    });
  };
  refused("/text_attribute", {.netcdf = true}, "scale_factor is no single number");
  refused("/several", {.netcdf = true}, "_FillValue is no single number");
  refused("/string", {.as = type::float32}, "do not become numbers");
  refused("/table[a]", {.netcdf = true}, "not members of a compound");
  BOOST_TEST(open("netcdf.h5", "/text_attribute", {.as = type::float32}).rows() == 500);
  BOOST_CHECK_THROW(open("netcdf.h5", "/several", {.as = type::int32}), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
