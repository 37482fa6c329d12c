// Where virtual datasets and external files lead.

#include "made_files.hpp"
#include "virtual_mapping.hpp"

#include <penstock/io/error.hpp>
#include <penstock/io/file.hpp>
#include <penstock/io/row_reader.hpp>

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

namespace io = penstock::io;
namespace fs = std::filesystem;
using namespace penstock::io::test;

namespace {

io::row_reader open(const std::string& file, const std::string& dataset, bool allow = false) {
  return io::row_reader({{made_folder() / file, dataset}}, {.allow_missing_sources = allow});
}

std::vector<std::byte> all_rows(const io::row_reader& reader) {
  std::vector<std::byte> out(reader.rows() * reader.row_bytes());
  reader.read(0, reader.rows(), out);
  return out;
}

/// The process works elsewhere while one of these lives.
class working_in {
 public:
  explicit working_in(const fs::path& folder) { fs::current_path(folder); }
  ~working_in() { fs::current_path(before_); }
  working_in(const working_in&) = delete;
  working_in& operator=(const working_in&) = delete;

 private:
  fs::path before_ = fs::current_path();
};

/// Set in this process's environment while one of these lives.
class with_variable {
 public:
  with_variable(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~with_variable() { ::unsetenv(name_); }
  with_variable(const with_variable&) = delete;
  with_variable& operator=(const with_variable&) = delete;

 private:
  const char* name_;
};

/// So many files more than now can be open while one of these lives.
class few_more_files {
 public:
  explicit few_more_files(unsigned more) {
    const int next = ::open("/dev/null", O_RDONLY);
    ::close(next);
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{static_cast<rlim_t>(next) + more, before_.rlim_max};
    BOOST_REQUIRE_EQUAL(::setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  ~few_more_files() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  few_more_files(const few_more_files&) = delete;
  few_more_files& operator=(const few_more_files&) = delete;

 private:
  rlimit before_{};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(sources)

BOOST_AUTO_TEST_CASE(sources_that_libhdf5_would_replace_by_fill_values_are_listed_and_refused) {
  const io::file file(made_folder() / "absent.h5");
  const auto all = file.datasets();
  BOOST_TEST(all.size() == 9u);
  for (const auto& info : all) BOOST_TEST_CONTEXT(info.path) {
      BOOST_TEST_REQUIRE(info.missing_sources.size() == 1u);
      BOOST_CHECK_EXCEPTION(open("absent.h5", info.path), io::error, [&](const io::error& e) {
        return std::string(e.what()).find("1 of its sources are missing, the first " + info.missing_sources.front()) !=
               std::string::npos;
      });
      const auto reader = open("absent.h5", info.path, true);
      BOOST_TEST(reader.rows() == 8u);
      if (info.path == "/texts") continue;
      std::vector<float> last(6);
      reader.read(7, 1, std::as_writable_bytes(std::span(last)));
      BOOST_TEST(std::count(last.begin(), last.end(), 9.0f) == 6);
    }
}

/// Where a name is numbered, numbers are tried until there is no such source: it must change with them.
BOOST_AUTO_TEST_CASE(only_b_after_a_percent_sign_numbers_sources) {
  for (const char* const name : {"%b", "part%b.h5", "%%%b", "%x%b"}) {
    const io::written_source of_file{name, "/x"}, of_dataset{"part.h5", name};
    BOOST_TEST(of_file.is_numbered(), name);
    BOOST_TEST(of_dataset.is_numbered(), name);
    BOOST_TEST(of_file.at(0).file != of_file.at(1).file, name);
  }
  for (const char* const name : {"part.h5", "b", "100%", "%%b", "%x", "%%%%b", "%B"})
    BOOST_TEST(!(io::written_source{name, name}.is_numbered()), name);
}

BOOST_AUTO_TEST_CASE(virtual_datasets_that_lead_in_a_circle_are_refused) {
  // libhdf5 1.10.8 follows them until its stack ends.
  const io::file file(made_folder() / "circle.h5");
  const auto all = file.datasets();
  BOOST_TEST(all.size() == 4u);
  for (const auto& info : all) {
    BOOST_TEST(info.unreadable.find("lead back to it") != std::string::npos, info.path);
    for (const bool allow : {false, true}) BOOST_CHECK_THROW(open("circle.h5", info.path, allow), io::error);
  }
}

/// Also where numbered sources, which are looked for until one is absent, lie at the depth where nobody looks any more.
BOOST_AUTO_TEST_CASE(files_behind_virtual_datasets_that_are_nested_too_deep_are_an_error,
                     *boost::unit_test::timeout(60)) {
  const io::file file(made_folder() / "deep.h5");
  for (const char* const dataset : {"/numbered0", "/plain0"}) {
    BOOST_TEST(file.describe(dataset).unreadable.find("more than 32 deep") != std::string::npos, dataset);
    BOOST_CHECK_EXCEPTION(file.files_behind(dataset), io::error, [&](const io::error& e) {
      return e.context().dataset == dataset && std::string(e.what()).find("more than 32 deep") != std::string::npos;
    });
  }
  for (const char* const dataset : {"/numbered1", "/plain1"}) {
    BOOST_TEST(file.describe(dataset).unreadable.empty(), file.describe(dataset).unreadable);
    BOOST_TEST(file.files_behind(dataset).size() == 1u, dataset);
  }
}

BOOST_AUTO_TEST_CASE(the_files_behind_a_dataset_are_those_that_links_and_sources_lead_to) {
  const auto names_behind = [](const char* file, const char* dataset) {
    std::set<std::string> names;
    for (const fs::path& each : io::file(made_folder() / file).files_behind(dataset)) {
      BOOST_TEST(fs::exists(each), each.string());
      names.insert(each.filename().string());
    }
    return names;
  };
  std::set<std::string> all{"linked.h5"};
  for (int n = 0; n < 16; ++n) all.insert("linked" + std::to_string(n) + ".h5");
  for (const char* const dataset : {"/soft", "/outside", "/outside_soft", "/columns", "/narrowed"})
    BOOST_TEST((names_behind("linked.h5", dataset) == all), dataset);
  BOOST_TEST((names_behind("linked0.h5", "/group/x") == std::set<std::string>{"linked0.h5"}));
  BOOST_TEST((names_behind("linked0.h5", "/outside") == std::set<std::string>{"linked0.h5", "linked1.h5"}));
  BOOST_TEST((names_behind("linked0.h5", "/nowhere") == std::set<std::string>{"linked0.h5"}));
  for (const auto& info : io::file(made_folder() / "circle.h5").datasets())
    BOOST_TEST(names_behind("circle.h5", info.path.c_str()).contains("circle.h5"));
}

BOOST_AUTO_TEST_CASE(the_files_that_hold_values_are_none_that_only_lead_to_them) {
  const auto names = [](const char* file, const char* dataset) {
    std::set<std::string> found;
    for (const fs::path& each : io::file(made_folder() / file).value_files(dataset))
      found.insert(each.filename().string());
    return found;
  };
  std::set<std::string> sources;
  for (int n = 0; n < 16; ++n) sources.insert("linked" + std::to_string(n) + ".h5");
  for (const char* const dataset : {"/soft", "/outside", "/columns"})
    BOOST_TEST((names("linked.h5", dataset) == sources), dataset);
  BOOST_TEST((names("linked0.h5", "/group/x") == std::set<std::string>{"linked0.h5"}));
  BOOST_TEST((names("linked0.h5", "/outside") == std::set<std::string>{"linked1.h5"}));
  BOOST_TEST((names("linked0.h5", "/nowhere") == std::set<std::string>{}));
  BOOST_TEST((names("external.h5", "/x") == std::set<std::string>{"external0.raw", "external1.raw"}));
}

BOOST_AUTO_TEST_CASE(one_source_that_libhdf5_must_read_leaves_the_others_direct) {
  const auto reader = open("linked.h5", "/one_locked");
  const auto& info = reader.segments()[0].info;
  BOOST_TEST((info.access == io::access::direct));
  BOOST_TEST(info.reason.find("1 of 16 of them through libhdf5: filter 6 (scaleoffset)") != std::string::npos,
             info.reason);
  all_rows(reader);
  BOOST_TEST(reader.statistics().locked_bytes == 4u * 6 * 4);
}

BOOST_AUTO_TEST_CASE(how_tall_decoded_chunks_are_is_told_by_the_files_however_they_are_read) {
  const auto check = [](const char* file, const char* dataset, std::uint64_t rows) {
    BOOST_TEST(open(file, dataset).decoded_rows() == rows, file << ":" << dataset);
  };
  const auto check_virtual = [&] {
    check("linked.h5", "/soft", 3);  // of contiguous sources, chunks of 3 x 6 and of 2 x 4
    check("linked.h5", "/outside_soft", 3);
    check("linked.h5", "/stepped", 2);   // every second row of them
    check("linked.h5", "/narrowed", 3);  // libhdf5 converts
    check("linked.h5", "/one_locked", 2);
    check("linked.h5", "/all_locked", 2);
    check("linked.h5", "/big_endian", 0);
    check("linked.h5", "/columns", 0);  // their mapping is libhdf5's alone to follow
  };
  check_virtual();
  check("layouts.h5", "/scaleoffset", 4);
  check("layouts.h5", "/gzip/split", 10);
  check("layouts.h5", "/plain/split", 0);
  const with_variable prefix("HDF5_VDS_PREFIX", (made_folder() / "nowhere").string());
  check_virtual();
}

BOOST_AUTO_TEST_CASE(a_source_that_does_not_open_for_want_of_descriptors_is_an_error_and_no_fill_values) {
  const auto reader = open("linked.h5", "/columns");
  BOOST_TEST_REQUIRE((reader.segments()[0].info.access == io::access::locked));
  {
    const few_more_files one(1);  // linked.h5 itself
    BOOST_CHECK_EXCEPTION(all_rows(reader), io::error,
                          [](const io::error& e) { return e.context().system == EMFILE && !e.context().damaged; });
  }
  BOOST_TEST((all_rows(reader) == all_rows(open("linked.h5", "/columns"))));
}

BOOST_AUTO_TEST_CASE(sources_lie_beside_the_file_that_a_link_leads_to) {
  const auto elsewhere = made_folder() / "elsewhere";
  fs::create_directories(elsewhere);
  fs::create_symlink(made_folder() / "linked.h5", elsewhere / "link.h5");
  BOOST_TEST((all_rows(io::row_reader({{elsewhere / "link.h5", "/soft"}})) == all_rows(open("linked.h5", "/soft"))));
}

BOOST_AUTO_TEST_CASE(external_files_are_looked_for_where_the_process_worked_when_they_were_opened) {
  const auto expected = bytes_of_file(made_folder() / "segments.bin");
  BOOST_CHECK_THROW(all_rows(open("relative.h5", "/x")), io::error);
  const auto reader = [] {
    const working_in folder(made_folder());
    return open("relative.h5", "/x");
  }();
  BOOST_TEST((reader.segments()[0].info.access == io::access::direct), reader.segments()[0].info.reason);
  BOOST_TEST((all_rows(reader) == expected));
}

BOOST_AUTO_TEST_CASE(zeros_that_stand_for_the_rest_of_external_files_are_told_with_what_is_there) {
  // 30 x 6 of int32 are 720 bytes. Of those the first file holds 100, and the second all others but 50.
  const std::string words = "its external files hold 670 of 720 bytes, and the others read as zeros";
  const auto ends_with = [&](const std::string& reason, const std::string& path) {
    BOOST_TEST(reason.ends_with(path == "/x"
                                    ? "; " + words
                                    : "; of its source " + (made_folder() / "external.h5").string() + ":/x, " + words),
               path << ": " << reason);
  };
  const io::file file(made_folder() / "external.h5");
  for (const std::string path : {"/x", "/behind", "/locked_behind", "/far_behind"}) {
    const auto info = file.describe(path);
    ends_with(info.reason, path);
    if (path == "/x") BOOST_TEST(info.stored_bytes == 670u);
    ends_with(open("external.h5", path).segments()[0].info.reason, path);
  }
  const working_in folder(made_folder());  // where the files of this one are, and are whole
  BOOST_TEST(open("relative.h5", "/x").segments()[0].info.reason == "contiguous, in external files");
}

BOOST_AUTO_TEST_CASE(sources_lie_where_libhdf5s_own_variable_says) {
  // As h5py reads them under the same variable, in a process of its own.
  const auto moved = bytes_of_file(made_folder() / "moved.bin"), beside = bytes_of_file(made_folder() / "beside.bin");
  const auto folders = (made_folder() / "nowhere").string() + ":" + (made_folder() / "prefix").string();
  {
    const with_variable prefix("HDF5_VDS_PREFIX", folders);
    const io::file file(made_folder() / "moved.h5");
    for (const auto& info : file.datasets()) {
      BOOST_TEST((info.access == io::access::locked), info.path);
      BOOST_TEST(info.reason.find("HDF5_VDS_PREFIX is set") != std::string::npos, info.reason);
      BOOST_TEST(info.missing_sources.size() == (info.path == "/absent" ? 1u : 0u), info.path);
    }
    const auto reader = open("moved.h5", "/v");
    BOOST_TEST((reader.segments()[0].info.access == io::access::locked));
    BOOST_TEST((all_rows(reader) == moved));
    BOOST_CHECK_THROW(open("moved.h5", "/absent"), io::error);
    all_rows(open("moved.h5", "/moved_alone"));
  }
  const auto reader = open("moved.h5", "/v");
  BOOST_TEST((reader.segments()[0].info.access == io::access::direct));
  BOOST_TEST((all_rows(reader) == beside));
  BOOST_CHECK_THROW(open("moved.h5", "/moved_alone"), io::error);
}

BOOST_AUTO_TEST_SUITE_END()
