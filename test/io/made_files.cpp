#include "made_files.hpp"

#include <boost/test/unit_test.hpp>

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>
#include <sstream>

namespace penstock::io::test {
namespace fs = std::filesystem;
namespace {

fs::path folder_path() { return fs::temp_directory_path() / ("penstock-io-" + std::to_string(::getpid())); }

struct folder {
  fs::path path = folder_path();

  folder() {
    fs::create_directories(path);
    const std::string command = "/usr/bin/python3 '" PENSTOCK_TEST_IO_SOURCE "/make_files.py' '" + path.string() + "'";
    BOOST_TEST_REQUIRE(std::system(command.c_str()) == 0);
  }
  ~folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

/// libhdf5 looks for plugins in the folder that make_files.py fills, not among those that happen to be installed: some
/// are older than what they would read here.
struct known_plugins {
  known_plugins() { ::setenv("HDF5_PLUGIN_PATH", (folder_path() / "plugins").c_str(), 1); }
};

}  // namespace

BOOST_TEST_GLOBAL_FIXTURE(known_plugins);

boost::test_tools::assertion_result run_if(bool condition, boost::unit_test::test_unit_id id, const std::string& why) {
  boost::test_tools::assertion_result answer(condition);
  if (condition) return answer;
  answer.message() << why;
  std::cout << "skipped: " << boost::unit_test::framework::get(id, boost::unit_test::TUT_ANY).full_name() << ": " << why
            << std::endl;
  return answer;
}

boost::test_tools::assertion_result memory_can_be_measured(boost::unit_test::test_unit_id id) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return run_if(false, id, "sanitizers take memory of their own");
#else
  return run_if(true, id, "");
#endif
}

const fs::path& made_folder() {
  static const folder made;
  return made.path;
}

const std::vector<made_dataset>& made_datasets() {
  static const std::vector<made_dataset> all = [] {
    std::vector<made_dataset> found;
    std::ifstream list(made_folder() / "list.txt");
    for (std::string line; std::getline(list, line);) {
      std::istringstream fields(line);
      made_dataset d;
      std::string rows, row_bytes, expected;
      std::getline(fields, d.file, '\t');
      std::getline(fields, d.dataset, '\t');
      std::getline(fields, d.access, '\t');
      std::getline(fields, rows, '\t');
      std::getline(fields, row_bytes, '\t');
      std::getline(fields, expected, '\t');
      d.rows = std::stoull(rows);
      d.row_bytes = std::stoull(row_bytes);
      d.expected = made_folder() / expected;
      found.push_back(std::move(d));
    }
    return found;
  }();
  return all;
}

std::vector<std::byte> bytes_of_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> chars{std::istreambuf_iterator<char>(in), {}};
  const auto bytes = std::as_bytes(std::span(chars));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> expected_rows(const made_dataset& d, std::uint64_t first, std::uint64_t count) {
  const auto all = bytes_of_file(d.expected);
  const auto* at = all.data() + first * d.row_bytes;
  return {at, at + count * d.row_bytes};
}

}  // namespace penstock::io::test
