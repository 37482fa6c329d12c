// Chunks of filters that libhdf5 alone undoes: it does not look whether there is as much as they need.

#include "../support/damaged_chunks.hpp"
#include "failure.hpp"
#include "filters/packed_sizes.hpp"
#include "made_files.hpp"

#include <penstock/config.hpp>
#include <penstock/io/error.hpp>
#include <penstock/io/row_reader.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

namespace io = penstock::io;
using namespace penstock::io::test;

namespace {

const std::filesystem::path& packed_folder() {
  static const auto folder = [] {
    const auto path = made_folder() / "packed";
    std::filesystem::create_directories(path);
    const std::string command =
        "/usr/bin/python3 '" PENSTOCK_TEST_IO_SOURCE "/packed_files.py' '" + path.string() + "'";
    if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
    return path;
  }();
  return folder;
}

io::packed_sizes nbit(std::vector<unsigned> parameters) { return io::nbit_sizes(parameters); }

std::vector<unsigned> scaleoffset(std::initializer_list<unsigned> first) {
  std::vector<unsigned> all(first);
  all.resize(20);
  return all;
}

std::vector<std::byte> bits_of_each(std::uint32_t bits) {
  std::vector<std::byte> front(21);
  for (std::size_t n = 0; n < 4; ++n) front[n] = static_cast<std::byte>(bits >> (8 * n));
  return front;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(packed_chunks)

BOOST_AUTO_TEST_CASE(whole_ones_are_read_and_cut_ones_are_damaged) {
  const auto file = packed_folder() / "packed.h5";
  std::ifstream list(packed_folder() / "packed.txt");
  std::size_t whole = 0, cut = 0, bytes = 0;
  for (std::string name; list >> name >> bytes;) BOOST_TEST_CONTEXT(name) {
      const io::row_reader reader({{.file = file, .dataset = name}});
      if (bytes == 0) {
        const auto expected = bytes_of_file(packed_folder() / (std::to_string(whole++) + ".packed"));
        std::vector<std::byte> rows(30 * reader.row_bytes());
        BOOST_TEST_REQUIRE(rows.size() == expected.size());
        reader.read(0, 30, rows);
        BOOST_TEST((rows == expected));
        continue;
      }
      ++cut;
      // What is decoded here alone: no samples of three bytes. Of others it is their length that is looked at.
      const bool decoded = PENSTOCK_HAS_AEC && name.find("szip_17") == std::string::npos;
      if (name.find("szip") != std::string::npos && !decoded && bytes >= 4) continue;
      std::vector<std::byte> rows(4 * reader.row_bytes());
      BOOST_CHECK_EXCEPTION(reader.read(4, 4, rows), io::error, [](const io::error& e) {
        return e.context().damaged && e.context().rows.first == 4 && e.context().rows.count == 4;
      });
      reader.read(0, 4, rows);
    }
  BOOST_TEST(whole > 200u);
  BOOST_TEST(cut > 1900u);
}

/// By hand: bits of all values, in whole bytes. Parameters: their number, whether nothing is to be done, the number of
/// values, and the tree: class (1: atomic, 2: array, 3: compound, 4: as it is), size, and what belongs to the class.
BOOST_AUTO_TEST_CASE(nbit_reads_the_bits_that_its_parameters_say) {
  const auto is = [](const io::packed_sizes& s, std::uint64_t reads, std::uint64_t makes) {
    return s.reads == reads && s.makes == makes;
  };
  BOOST_TEST(is(nbit({8, 0, 16, 1, 4, 0, 17, 0}), 34, 64));
  BOOST_TEST(is(nbit({8, 0, 3, 1, 4, 1, 17, 3}), 7, 12));
  BOOST_TEST(is(nbit({10, 0, 4, 2, 24, 1, 4, 0, 17, 0}), 51, 96));         // six of 17 bits
  BOOST_TEST(is(nbit({12, 0, 4, 2, 24, 2, 12, 1, 4, 0, 17, 0}), 51, 96));  // two arrays of three
  BOOST_TEST(is(nbit({7, 0, 5, 2, 12, 4, 3}), 60, 60));                    // four texts of three bytes
  // 17 bits and three bytes, sixteen times.
  BOOST_TEST(is(nbit({15, 0, 16, 3, 24, 2, 0, 1, 4, 0, 17, 0, 17, 4, 3}), 82, 384));
}

/// Each would make libhdf5 divide by zero, or write past its memory.
BOOST_AUTO_TEST_CASE(parameters_of_nbit_that_fit_no_type_are_damage) {
  const std::vector<std::vector<unsigned>> all{
      {},
      {8, 0, 16, 1, 4, 0, 17},                  // fewer than they say
      {8, 0, 16, 1, 0, 0, 17, 0},               // of no bytes
      {8, 0, 16, 1, 4, 0, 0, 0},                // of no bits
      {8, 0, 16, 1, 4, 0, 33, 0},               // more bits than there are
      {8, 0, 16, 1, 4, 0, 17, 16},              // beyond its end
      {8, 0, 16, 1, 4, 0, 0xffffffff, 2},       // a sum that wraps
      {8, 0, 16, 1, 4, 2, 17, 0},               // an order that there is not
      {8, 0, 16, 7, 4, 0, 17, 0},               // a class that there is not
      {8, 0, 0x40000000, 1, 4, 0, 17, 0},       // 2^32 bytes, which wrap
      {10, 0, 4, 2, 24, 1, 0, 0, 17, 0},        // an array of nothing
      {12, 0, 4, 2, 24, 2, 0, 1, 4, 0, 17, 0},  // an array of arrays of nothing
      {10, 0, 4, 2, 24, 1, 28, 0, 17, 0},       // longer than the array
      {12, 0, 4, 3, 8, 1, 8, 1, 4, 0, 17, 0},   // a member behind the end
      {12, 0, 4, 3, 8, 1, 6, 1, 4, 0, 17, 0},   // a member beyond it
      {8, 0, 4, 3, 8, 0xffffffff, 0, 4},        // members that are not there
  };
  for (std::size_t n = 0; n < all.size(); ++n) BOOST_TEST_CONTEXT(n) BOOST_CHECK_THROW(nbit(all[n]), io::damage);
  std::vector<unsigned> deep{0, 0, 1, 2, 4};
  for (int n = 0; n < 1000; ++n) deep.insert(deep.end(), {2, 4});
  deep[0] = static_cast<unsigned>(deep.size());
  BOOST_CHECK_THROW(nbit(deep), io::damage);
}

BOOST_AUTO_TEST_CASE(scaleoffset_reads_the_bits_that_the_chunk_says) {
  const auto integers = scaleoffset({2, 0, 16, 0, 4, 1});
  const auto sizes = io::scaleoffset_sizes(integers, bits_of_each(7));
  BOOST_TEST(sizes.reads == 21u + 14);
  BOOST_TEST(sizes.makes == 64u);
  BOOST_TEST(io::scaleoffset_sizes(integers, bits_of_each(0)).reads == 21u);
  BOOST_TEST(io::scaleoffset_sizes(integers, bits_of_each(32)).reads == 21u + 64);
  BOOST_TEST(io::scaleoffset_packs(integers));
  BOOST_TEST(!io::scaleoffset_packs(scaleoffset({2, 32, 16, 0, 4, 1})));
  BOOST_TEST(io::scaleoffset_packs(scaleoffset({0, 32, 16, 1, 4, 0})));  // digits of floats
  for (const std::uint32_t bits : {33u, 255u, 0xffffffffu})
    BOOST_CHECK_THROW(io::scaleoffset_sizes(integers, bits_of_each(bits)), io::damage);
  for (const unsigned size : {0u, 3u, 16u})
    BOOST_CHECK_THROW(io::scaleoffset_sizes(scaleoffset({2, 0, 16, 0, size, 1}), bits_of_each(1)), io::damage);
  BOOST_CHECK_THROW(io::scaleoffset_sizes(std::vector<unsigned>(19), bits_of_each(1)), io::damage);
}

/// Of 16 GiB of the same value nothing need be stored.
BOOST_AUTO_TEST_CASE(what_scaleoffset_makes_of_a_chunk_is_bounded) {
  const auto file = made_folder() / "scaleoffset_makes.h5";
  penstock::test::run_python("path = '" + file.string() + "'\n" + R"(
import h5py, struct
with h5py.File(path, 'w') as f:
    d = f.create_dataset('x', (64, 8), '<i4', chunks=(64, 8), scaleoffset=0)
    d.id.write_direct_chunk((0, 0), struct.pack('<IBQQ', 0, 8, 7, 0))
    values = d.id.get_create_plist().get_filter(0)[2]
data = open(path, 'rb').read()
was = struct.pack('<8I', *values[:8])
assert data.count(was) == 1
open(path, 'wb').write(data.replace(was, struct.pack('<8I', *values[:2], 0xffffffff, *values[3:8])))
)");
  const io::row_reader reader({{.file = file, .dataset = "/x"}});
  std::vector<std::byte> rows(64 * reader.row_bytes());
  BOOST_CHECK_EXCEPTION(reader.read(0, 64, rows), io::error, [](const io::error& e) {
    return e.context().damaged && std::string(e.what()).find("a filter makes more than") != std::string::npos;
  });
}

BOOST_AUTO_TEST_SUITE_END()
