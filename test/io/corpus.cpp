// Every dataset of the corpus (files from the HDF5 library's own tests) against what h5py read from it.

#include "made_files.hpp"

#include "read_driver.hpp"

#include <penstock/io/error.hpp>
#include <penstock/io/file.hpp>
#include <penstock/io/row_reader.hpp>

#include "../../examples/inspect/digest.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace io = penstock::io;
namespace fs = std::filesystem;

namespace {

const fs::path corpus = PENSTOCK_TEST_CORPUS;

/// Relative paths of external raw files start at the working directory.
class working_directory {
 public:
  explicit working_directory(const fs::path& folder) { fs::current_path(folder); }
  ~working_directory() { fs::current_path(before_); }

 private:
  fs::path before_ = fs::current_path();
};

boost::test_tools::assertion_result is_there(boost::unit_test::test_unit_id id) {
  return io::test::run_if(fs::exists(corpus / "manifest.json"), id, "there is no corpus at " + corpus.string());
}

struct tally {
  int right = 0, plain = 0, direct = 0;
};

/// Whether libhdf5 reads no values while we read all rows.
bool reads_without_library(const fs::path& path, const std::string& name) {
  const io::row_reader reader({{.file = path, .dataset = name}});
  const auto row_bytes = std::max<std::size_t>(reader.row_bytes(), 1);
  const auto some = std::max<std::uint64_t>(1, (std::size_t{4} << 20) / row_bytes);
  std::vector<std::byte> out(some * reader.row_bytes());
  const auto before = io::raw_reads_by_library();
  for (std::uint64_t first = 0; first < reader.rows(); first += some) {
    const auto count = std::min(some, reader.rows() - first);
    reader.read(first, count, std::span(out).first(count * reader.row_bytes()));
  }
  return io::raw_reads_by_library() == before;
}

bool is_exotic(const nlohmann::json& filters) {
  const std::set<int> known{1, 2, 3, 4};
  return std::any_of(filters.begin(), filters.end(),
                     [&](const auto& f) { return !known.contains(f.template get<int>()); });
}

void compare(const fs::path& path, const std::string& name, const nlohmann::json& expected, const io::dataset_info& d,
             tally& t) {
  BOOST_TEST_CONTEXT(path.string() << ":" << name) {
    BOOST_TEST(d.shape == expected["shape"].get<std::vector<std::uint64_t>>(), boost::test_tools::per_element());
    BOOST_TEST_REQUIRE(d.element.has_value());
    BOOST_TEST(d.element->numpy == expected["type"].get<std::string>());
    const auto read = examples::digest(path, name);
    BOOST_TEST(read.crc32 == expected["crc32"].get<std::string>());
    ++t.right;
    const auto layout = expected["layout"].get<std::string>();
    if ((layout != "contiguous" && layout != "chunked") || is_exotic(expected["filters"])) return;
    ++t.plain;
    if (read.access != io::access::direct) return;
    ++t.direct;
    BOOST_TEST(reads_without_library(path, name));
  }
}

void compare(const fs::path& path, const nlohmann::json& expected, tally& t) {
  const working_directory there(path.parent_path());
  const io::file file(path);
  std::map<std::string, io::dataset_info> found;
  for (auto& d : file.datasets()) found.emplace(d.path, std::move(d));
  for (const auto& [name, values] : expected.items()) {
    BOOST_TEST(found.contains(name), path.string() << ":" << name << " was not found");
    if (values.contains("crc32") && found.contains(name)) compare(path, name, values, found.at(name), t);
  }
}

/// A file that h5py cannot open: one sentence.
void is_refused(const fs::path& path) {
  BOOST_CHECK_EXCEPTION(io::file{path}, io::error,
                        [](const io::error& e) { return std::string(e.what()).find('\n') == std::string::npos; });
}

/// A file that h5py opens and cannot walk: an error, or whatever can be read; never a crash.
void survive(const fs::path& path) {
  try {
    const io::file file(path);
    for (const auto& d : file.datasets()) {
      if (!d.unreadable.empty()) continue;
      try {
        examples::digest(path, d.path);
      } catch (const io::error&) {
      }
    }
  } catch (const io::error& e) {
    BOOST_TEST(std::string(e.what()).find('\n') == std::string::npos);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(corpus_of_files)

BOOST_AUTO_TEST_CASE(every_dataset_that_h5py_reads_gives_the_same_bytes, *boost::unit_test::precondition(is_there)) {
  std::ifstream in(corpus / "manifest.json");
  const auto manifest = nlohmann::json::parse(in);
  tally t;
  for (const auto& [name, values] : manifest.items()) {
    const auto path = fs::canonical(corpus / "files" / name);
    if (values.contains("datasets"))
      compare(path, values["datasets"], t);
    else if (values["error"].get<std::string>().starts_with("Unable to open file"))
      is_refused(path);
    else
      survive(path);
  }
  BOOST_TEST_MESSAGE(t.right << " datasets; of " << t.plain << " plain ones " << t.direct << " are read directly");
  BOOST_TEST(t.right > 0);
  BOOST_TEST(t.direct >= 0.95 * t.plain);
}

BOOST_AUTO_TEST_SUITE_END()
