// What libhdf5 reads by itself, counted in the file driver beneath it.

#include "read_driver.hpp"

#include "made_files.hpp"

#include <penstock/io/row_reader.hpp>

#include <boost/test/unit_test.hpp>

namespace io = penstock::io;
using namespace penstock::io::test;

namespace {

/// Raw reads that libhdf5 makes while all rows are read.
std::uint64_t raw_reads_of(const io::row_reader& reader) {
  std::vector<std::byte> out(reader.rows() * reader.row_bytes());
  const auto before = io::raw_reads_by_library();
  reader.read(0, reader.rows(), out);
  return io::raw_reads_by_library() - before;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(read_driver)

BOOST_AUTO_TEST_CASE(libhdf5_reads_no_values_of_datasets_that_are_read_directly) {
  for (const auto& d : made_datasets()) {
    // Streams longer than their chunk are what only libhdf5 understands; one source of this one is for it alone.
    if (d.access != "direct" || d.dataset.starts_with("/longer_stream") || d.dataset == "/one_locked") continue;
    const io::row_reader reader({{.file = made_folder() / d.file, .dataset = d.dataset}});
    BOOST_TEST(raw_reads_of(reader) == 0u, d.name());
    BOOST_TEST(reader.statistics().locked_bytes == 0u);
  }
}

BOOST_AUTO_TEST_CASE(what_libhdf5_reads_is_counted) {
  for (const std::string name : {"/scaleoffset"}) {
    const io::row_reader reader({{.file = made_folder() / "layouts.h5", .dataset = name}});
    BOOST_TEST(raw_reads_of(reader) > 0u);
    BOOST_TEST(reader.statistics().locked_bytes > 0u);
  }
  const io::row_reader longer({{.file = made_folder() / "filters.h5", .dataset = "/longer_stream/smooth"}});
  BOOST_TEST(raw_reads_of(longer) > 0u);
}

BOOST_AUTO_TEST_SUITE_END()
