// Many chunks, many datasets, many readers, and the process that is forked.

#include "made_files.hpp"

#include <penstock/io/error.hpp>
#include <penstock/io/file.hpp>
#include <penstock/io/row_reader.hpp>

#include <boost/test/unit_test.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <thread>

namespace io = penstock::io;
namespace fs = std::filesystem;
using namespace penstock::io::test;

namespace {

const fs::path& many_folder() {
  static const fs::path folder = [] {
    const auto path = made_folder() / "many";
    fs::create_directories(path);
    const std::string command = "/usr/bin/python3 '" PENSTOCK_TEST_IO_SOURCE "/make_many.py' '" + path.string() + "'";
    BOOST_TEST_REQUIRE(std::system(command.c_str()) == 0);
    return path;
  }();
  return folder;
}

std::size_t resident_bytes() {
  std::size_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

io::row_reader open(const fs::path& file, const std::string& dataset) {
  return io::row_reader({{.file = file, .dataset = dataset}});
}

std::vector<std::uint32_t> numbers(const io::row_reader& reader, std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint32_t> out(count * reader.row_bytes() / 4);
  reader.read(first, count, std::as_writable_bytes(std::span(out)));
  return out;
}

bool counts_from(std::span<const std::uint32_t> numbers, std::uint32_t first) {
  for (const auto n : numbers)
    if (n != first++) return false;
  return true;
}

/// Runs `f` in a child of this process; its answer is the child's exit status.
template <class F>
bool in_child(F&& f) {
  const auto child = ::fork();
  if (child == 0) {
    bool right = false;
    try {
      right = f();
    } catch (...) {
    }
    ::_exit(right ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(many)

BOOST_AUTO_TEST_CASE(datasets_of_65536_chunks_are_read_directly_under_both_kinds_of_index) {
  for (const std::string version : {"earliest", "latest"}) {
    const auto reader = open(many_folder() / ("chunks_" + version + ".h5"), "/x");
    BOOST_TEST((reader.segments()[0].info.access == io::access::direct));
    BOOST_TEST(counts_from(numbers(reader, 0, 65536), 0));
    BOOST_TEST(counts_from(numbers(reader, 40000, 9), 40000));
  }
}

BOOST_AUTO_TEST_CASE(a_million_chunks_take_less_than_64_MiB_to_open,
                     *boost::unit_test::precondition(memory_can_be_measured)) {
  const auto file = many_folder() / "million.h5";
  BOOST_TEST(in_child([&] {  // whose memory nothing else has grown
    const auto before = resident_bytes();
    const auto reader = open(file, "/x");
    const auto taken = resident_bytes() - before;
    if (taken >= (std::size_t{64} << 20)) std::cerr << taken << " bytes were taken\n";
    return taken < (std::size_t{64} << 20) && reader.segments()[0].info.access == io::access::direct &&
           counts_from(numbers(reader, 0, 1000000), 0) && counts_from(numbers(reader, 999998, 2), 1999996);
  }));
}

BOOST_AUTO_TEST_CASE(visiting_2000_datasets_leaves_memory_flat,
                     *boost::unit_test::precondition(memory_can_be_measured)) {
  const auto file = many_folder() / "datasets.h5";
  const auto visit = [&](int first, int end) {
    for (int n = first; n < end; ++n)
      for (const char* kind : {"/d", "/s"}) {
        const auto reader = open(file, kind + std::to_string(n));
        if (!counts_from(numbers(reader, 0, reader.rows()), static_cast<std::uint32_t>(n))) return false;
      }
    return true;
  };
  BOOST_TEST(visit(0, 200));
  const auto before = resident_bytes();
  BOOST_TEST(visit(200, 2000));
  BOOST_TEST(resident_bytes() < before + (std::size_t{8} << 20));
}

BOOST_AUTO_TEST_CASE(a_field_of_2000_datasets_that_libhdf5_reads_holds_few_open,
                     *boost::unit_test::precondition(memory_can_be_measured)) {
  std::vector<io::location> segments;
  for (int n = 0; n < 2000; ++n)
    segments.push_back({.file = many_folder() / "datasets.h5", .dataset = "/s" + std::to_string(n)});
  const io::row_reader reader(segments, {.open_files = 8});
  std::vector<std::uint32_t> rows(64);
  const auto visit = [&](std::uint64_t first, std::uint64_t end) {
    for (std::uint64_t n = first; n < end; ++n) {
      reader.read(n * 64, 64, std::as_writable_bytes(std::span(rows)));
      if (!counts_from(rows, static_cast<std::uint32_t>(n))) return false;
    }
    return true;
  };
  BOOST_TEST(visit(0, 200));
  const auto before = resident_bytes();
  BOOST_TEST(visit(200, 2000));
  BOOST_TEST(resident_bytes() < before + (std::size_t{8} << 20));
}

BOOST_AUTO_TEST_CASE(one_file_may_be_opened_many_times_and_read_by_many_threads_at_once) {
  const auto file = made_folder() / "layouts.h5";
  const io::file held(file);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (unsigned n = 0; n < 20; ++n)
        for (const auto& d : made_datasets()) {
          if (d.file != "layouts.h5" || d.rows < 2 || (t + n) % 3 == 0) continue;
          const auto reader = open(file, d.dataset);
          std::vector<std::byte> out(d.row_bytes * (d.rows - 1));
          reader.read(1, d.rows - 1, out);
          wrong += out != expected_rows(d, 1, d.rows - 1);
        }
    });
  for (unsigned n = 0; n < 20; ++n) wrong += held.datasets().empty();
  for (auto& t : threads) t.join();
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(after_a_fork_direct_reads_work_and_libhdf5s_are_refused_by_name) {
  const auto file = many_folder() / "datasets.h5";
  const auto direct = open(file, "/d7"), locked = open(file, "/s7");
  BOOST_TEST(counts_from(numbers(locked, 0, 64), 7));
  BOOST_TEST(in_child([&] { return counts_from(numbers(direct, 0, 4096), 7); }));
  BOOST_TEST(in_child([&] {
    try {
      numbers(locked, 0, 64);
    } catch (const io::error& e) {
      return std::string(e.what()).find("open it after the fork") != std::string::npos && !e.context().damaged;
    }
    return false;
  }));
  BOOST_TEST(in_child([&] { return counts_from(numbers(open(file, "/s8"), 0, 64), 8); }));  // opened anew
  BOOST_TEST(counts_from(numbers(direct, 0, 4096), 7));
  BOOST_TEST(counts_from(numbers(locked, 0, 64), 7));
}

BOOST_AUTO_TEST_SUITE_END()
