#include <penstock/io/location.hpp>

#include "made_files.hpp"

#include <penstock/io/error.hpp>
#include <penstock/io/file.hpp>
#include <penstock/io/row_reader.hpp>

#include <boost/test/unit_test.hpp>

#include <cerrno>

namespace io = penstock::io;
using namespace penstock::io::test;

BOOST_AUTO_TEST_SUITE(location)

BOOST_AUTO_TEST_CASE(files_are_sorted_as_a_person_counts) {
  std::vector<std::string> names;
  for (const auto& l : io::datasets((made_folder() / "part*.h5").string(), "/a/x"))
    names.push_back(l.file.filename().string());
  const std::vector<std::string> expected{"part1.h5", "part2.h5", "part10.h5"};
  BOOST_TEST(names == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(datasets_may_be_matched_too) {
  std::vector<std::string> names;
  for (const auto& l : io::datasets((made_folder() / "part1.h5").string(), "/*/x")) names.push_back(l.dataset);
  const std::vector<std::string> expected{"/a/x", "/b/x"};
  BOOST_TEST(names == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_plain_path_is_itself_and_gains_its_slash) {
  const auto found = io::datasets("some/where.h5", "x");
  BOOST_TEST_REQUIRE(found.size() == 1);
  BOOST_TEST(found[0].file == "some/where.h5");
  BOOST_TEST(found[0].dataset == "/x");
}

BOOST_AUTO_TEST_CASE(a_member_of_a_compound_is_no_pattern) {
  const auto found = io::datasets((made_folder() / "members.h5").string(), "/gzip[id]");
  BOOST_TEST_REQUIRE(found.size() == 1);
  BOOST_TEST(found[0].dataset == "/gzip[id]");
  // One that is mistyped neither.
  BOOST_CHECK_EXCEPTION(io::datasets((made_folder() / "members.h5").string(), "/gzip[di]"), io::error,
                        [](const io::error& e) {
                          BOOST_TEST_INFO(e.what());
                          return std::string(e.what()).find("it has no member di; there are ") != std::string::npos;
                        });
}

BOOST_AUTO_TEST_CASE(a_file_may_be_named_in_any_way) {
  const auto folder = made_folder() / "fold[er]";
  std::filesystem::create_directories(folder);
  const std::vector<std::string> names{"a*b?.h5",  "[x].h5", "a[.h5",   "line\nbreak.h5", "not\xffutf8.h5",
                                       " sp ace ", "-.h5",   "a\\b.h5", "%s{}.h5",        "'\".h5"};
  const auto expected = bytes_of_file(made_folder() / "names.bin");
  for (const auto& name : names) {
    std::filesystem::copy_file(made_folder() / "names.h5", folder / name);
    const auto found = io::datasets((folder / name).string(), "/sp ace");
    BOOST_TEST_REQUIRE(found.size() == 1, name);
    BOOST_TEST(found[0].file == folder / name);
    const io::row_reader reader(found);
    std::vector<std::byte> rows(reader.rows() * reader.row_bytes());
    reader.read(0, reader.rows(), rows);
    BOOST_TEST((rows == expected), name);
    BOOST_TEST(io::file(folder / name).datasets().size() == 9u);
  }
  // A pattern in a folder with such a name: a backslash makes a character plain.
  BOOST_TEST(io::datasets((made_folder() / "fold\\[er\\]/*.h5").string(), "/sp ace").size() == names.size() - 1);
}

namespace {

void fails_with(const std::string& pattern, const std::string& dataset, const std::string& sentence, int system = 0) {
  BOOST_CHECK_EXCEPTION(io::datasets(pattern, dataset), io::error, [&](const io::error& e) {
    BOOST_TEST(e.what() == sentence);
    BOOST_TEST(e.context().system == system);
    return true;
  });
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_matches_nothing_is_an_error) {
  const std::string folder = made_folder().string(), file = folder + "/part1.h5";
  fails_with(folder + "/none*.h5", "/x", "no file matches '" + folder + "/none*.h5'; check the pattern and the folder");
  fails_with(file, "/none*", file + ": no dataset matches '/none*'; penstock-inspect lists what the file holds");
}

BOOST_AUTO_TEST_CASE(a_pattern_s_folder_that_is_not_there_is_named) {
  const std::string none = (made_folder() / "none").string();
  fails_with(none + "/*.h5", "/x", "there is no folder '" + none + "'; check the pattern '" + none + "/*.h5'", ENOENT);
  fails_with(none + "/deep/*/part?.h5", "/x",
             "there is no folder '" + none + "/deep'; check the pattern '" + none + "/deep/*/part?.h5'", ENOENT);
  // A file is no folder, and a folder of some that has no such one in it is passed over.
  const std::string file = (made_folder() / "part1.h5").string();
  fails_with(file + "/*.h5", "/x", "no file matches '" + file + "/*.h5'; check the pattern and the folder");
  std::filesystem::create_directories(made_folder() / "shards" / "one");
  std::filesystem::create_directories(made_folder() / "shards" / "two" / "train");
  std::filesystem::copy_file(made_folder() / "part1.h5", made_folder() / "shards/two/train/part1.h5");
  BOOST_TEST(io::datasets((made_folder() / "shards/*/train/*.h5").string(), "/a/x").size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_pattern_s_folder_that_cannot_be_listed_is_named_with_the_reason) {
  const std::string loop = (made_folder() / "loop").string();
  std::filesystem::create_symlink("loop", loop);
  fails_with(loop + "/*.h5", "/x",
             "the folder '" + loop + "' of '" + loop + "/*.h5' cannot be listed: Too many levels of symbolic links",
             ELOOP);
}

BOOST_AUTO_TEST_SUITE_END()
