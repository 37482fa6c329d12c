#pragma once

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace penstock::io::test {

/// A dataset that make_files.py wrote, and what reading it must give.
struct made_dataset {
  std::string file, dataset, access;
  std::uint64_t rows = 0;
  std::size_t row_bytes = 0;
  std::filesystem::path expected;

  std::string name() const { return file + ":" + dataset; }
};

/// For preconditions: true, or false after telling on the standard output that the case is skipped, and why.
boost::test_tools::assertion_result run_if(bool condition, boost::unit_test::test_unit_id id, const std::string& why);

/// Sanitizers take memory of their own: what is resident, or what may be, says nothing then.
boost::test_tools::assertion_result memory_can_be_measured(boost::unit_test::test_unit_id id);

/// The folder of test files, made by h5py when first asked for, and removed when the program ends.
const std::filesystem::path& made_folder();
const std::vector<made_dataset>& made_datasets();

std::vector<std::byte> bytes_of_file(const std::filesystem::path& path);
/// The rows [first, first + count) that reading must give.
std::vector<std::byte> expected_rows(const made_dataset& d, std::uint64_t first, std::uint64_t count);

}  // namespace penstock::io::test
