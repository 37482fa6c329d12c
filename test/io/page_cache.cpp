// read_options::around_page_cache.

#include "made_files.hpp"

#include <penstock/fault.hpp>
#include <penstock/io/error.hpp>
#include <penstock/io/row_reader.hpp>

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace io = penstock::io;
namespace fs = std::filesystem;
using namespace penstock::io::test;

namespace {

/// Shared memory is a file system that knows no O_DIRECT before Linux 6.6.
const fs::path shared_memory = "/dev/shm";

bool allows_direct_reads(const fs::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_DIRECT);
  if (fd < 0) return false;
  void* block = std::aligned_alloc(4096, 4096);
  const bool read = ::pread(fd, block, 4096, 0) >= 0;
  std::free(block);
  ::close(fd);
  return read;
}

/// The share of a file's pages that lie in memory.
double cached(const fs::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY);
  const auto bytes = fs::file_size(file);
  void* at = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  std::vector<unsigned char> pages((bytes + 4095) / 4096);
  const bool known = ::mincore(at, bytes, pages.data()) == 0;
  ::munmap(at, bytes);
  ::close(fd);
  BOOST_TEST_REQUIRE(known);
  const auto there = std::count_if(pages.begin(), pages.end(), [](unsigned char p) { return p & 1; });
  return static_cast<double>(there) / static_cast<double>(pages.size());
}

void forget(const fs::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY);
  ::fdatasync(fd);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

std::vector<std::byte> all_rows(const io::row_reader& reader) {
  std::vector<std::byte> out(reader.rows() * reader.row_bytes());
  reader.read(0, reader.rows(), out);
  return out;
}

boost::test_tools::assertion_result is_allowed(boost::unit_test::test_unit_id id) {
  return run_if(allows_direct_reads(made_folder() / "layouts.h5"), id,
                "the file system of " + made_folder().string() + " refuses O_DIRECT");
}

struct short_reads final : penstock::fault_injector {
  penstock::fault before(penstock::fault_site site, std::string_view, std::uint64_t, std::size_t) override {
    penstock::fault f;
    if (site == penstock::fault_site::read_file) f.at_most = 101;
    return f;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(page_cache)

BOOST_AUTO_TEST_CASE(reads_around_the_page_cache_give_the_same_bytes) {
  for (const auto& d : made_datasets()) {
    BOOST_TEST_CONTEXT(d.name()) {
      const io::row_reader reader({{.file = made_folder() / d.file, .dataset = d.dataset}},
                                  {.around_page_cache = true});
      BOOST_TEST((all_rows(reader) == bytes_of_file(d.expected)));
      std::vector<std::byte> some(reader.row_bytes());
      for (std::uint64_t row = 0; row < d.rows; row += 7) {
        reader.read(row, 1, some);
        BOOST_TEST((some == expected_rows(d, row, 1)));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_read_around_the_page_cache_is_not_in_it, *boost::unit_test::precondition(is_allowed)) {
  const auto file = made_folder() / "large.h5";
  for (const bool around : {false, true}) {
    const io::row_reader reader({{.file = file, .dataset = "/x"}}, {.around_page_cache = around});
    BOOST_TEST(reader.segments()[0].info.reason.find("page cache") == std::string::npos);
    forget(file);
    BOOST_TEST_REQUIRE(cached(file) < 0.1);
    const auto rows = all_rows(reader);
    BOOST_TEST((rows == bytes_of_file(made_folder() / "large.bin")));
    // The file holds the values twice.
    BOOST_TEST((around ? cached(file) < 0.1 : cached(file) > 0.4));
  }
}

BOOST_AUTO_TEST_CASE(rows_may_go_to_any_place_of_a_page) {
  // Some places, seen from where the bytes lie in the file, are slow to copy to, and are reached by a detour.
  const auto expected = bytes_of_file(made_folder() / "large.bin");
  std::vector<std::byte> memory(expected.size() + 2 * 4096);
  for (const bool around : {false, true})
    for (const std::string name : {"/x", "/contiguous"}) {
      const io::row_reader reader({{.file = made_folder() / "large.h5", .dataset = name}},
                                  {.around_page_cache = around});
      for (const std::size_t at : {0, 1, 8, 31, 32, 1000, 2047, 2048, 2056, 3000, 4016, 4024, 4095}) {
        const auto out = std::span(memory).subspan(at, expected.size());
        reader.read(0, reader.rows(), out);
        BOOST_TEST(std::equal(out.begin(), out.end(), expected.begin()), name << " at " << at);
      }
    }
  // Every place that matters is met, wherever the memory starts.
  const io::row_reader reader({{.file = made_folder() / "large.h5", .dataset = "/contiguous"}});
  for (std::size_t at = 0; at < 4096; at += 13) {
    const auto out = std::span(memory).subspan(at, 200 * reader.row_bytes());
    reader.read(7, 200, out);
    BOOST_TEST(
        std::equal(out.begin(), out.end(), expected.begin() + static_cast<std::ptrdiff_t>(7 * reader.row_bytes())));
  }
}

BOOST_AUTO_TEST_CASE(its_memory_is_planned) {
  const auto total = [](bool around) {
    const io::row_reader reader({{.file = made_folder() / "large.h5", .dataset = "/x"}}, {.around_page_cache = around});
    std::size_t bytes = 0;
    for (const auto& item : reader.memory({.concurrency = 2})) bytes += item.bytes;
    return bytes;
  };
  BOOST_TEST(total(true) - total(false) == 2u * ((1u << 20) + 4096));
}

BOOST_AUTO_TEST_CASE(a_file_system_that_refuses_is_told_and_read_through_the_cache) {
  const auto file = shared_memory / ("penstock-" + std::to_string(::getpid()) + ".h5");
  std::error_code none;
  if (!fs::copy_file(made_folder() / "large.h5", file, none) || allows_direct_reads(file)) {
    std::cout << "skipped: page_cache/a_file_system_that_refuses_is_told: there is none at " << shared_memory << "\n";
    fs::remove(file, none);
    return;
  }
  {
    const io::row_reader reader({{.file = file, .dataset = "/x"}}, {.around_page_cache = true});
    BOOST_TEST(reader.segments()[0].info.reason.find("refuses O_DIRECT") != std::string::npos,
               reader.segments()[0].info.reason);
    BOOST_TEST((all_rows(reader) == bytes_of_file(made_folder() / "large.bin")));
  }
  fs::remove(file, none);
}

BOOST_AUTO_TEST_CASE(short_reads_are_gone_on_with_around_the_cache_too) {
  const io::row_reader reader({{.file = made_folder() / "layouts.h5", .dataset = "/gzip/rows"}},
                              {.around_page_cache = true, .faults = std::make_shared<short_reads>()});
  const io::row_reader calm({{.file = made_folder() / "layouts.h5", .dataset = "/gzip/rows"}});
  BOOST_TEST((all_rows(reader) == all_rows(calm)));
}

BOOST_AUTO_TEST_SUITE_END()
