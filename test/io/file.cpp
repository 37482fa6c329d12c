#include <penstock/io/file.hpp>

#include "made_files.hpp"

#include <penstock/io/error.hpp>

#include <boost/test/unit_test.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace io = penstock::io;
using namespace penstock::io::test;

namespace {

std::string message(const std::filesystem::path& path) {
  try {
    const io::file opened(path);
  } catch (const io::error& e) {
    BOOST_TEST(e.context().file == path.string());
    BOOST_TEST(std::string(e.what()).find('\n') == std::string::npos);
    return e.what();
  }
  return "no error";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::filesystem::path file_of(const std::string& name, const std::string& bytes) {
  const auto path = made_folder() / name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

boost::test_tools::assertion_result is_not_root(boost::unit_test::test_unit_id id) {
  return run_if(::geteuid() != 0, id, "root may read every file");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(file)

BOOST_AUTO_TEST_CASE(what_cannot_be_opened_is_told_in_one_sentence) {
  BOOST_TEST(has(message(made_folder() / "nowhere.h5"), "no such file"));
  BOOST_TEST(has(message(made_folder()), "a folder"));
  BOOST_TEST(has(message("/dev/null"), "no regular file"));
  BOOST_TEST(has(message(file_of("empty.h5", "")), "empty"));
  BOOST_TEST(has(message(file_of("text.h5", "hello, this is text")), "signature"));
  BOOST_TEST(has(message(file_of("packed.h5", "\x1f\x8b\x08 and so on")), "gzip"));
  BOOST_TEST(has(message(file_of("array.npy", "\x93NUMPY and so on")), "NumPy"));
  BOOST_TEST(has(message(made_folder() / "cut.h5"), "truncated"));
  BOOST_TEST(has(message(file_of("header.h5", "\x89HDF\r\n\x1a\n and nothing else")), "libhdf5 cannot open it"));
}

BOOST_AUTO_TEST_CASE(a_file_without_permission_says_so, *boost::unit_test::precondition(is_not_root)) {
  const auto path = file_of("secret.h5", "x");
  ::chmod(path.c_str(), 0);
  BOOST_TEST(has(message(path), "no permission"));
}

BOOST_AUTO_TEST_CASE(datasets_are_walked_in_name_order_hard_links_once_and_other_links_not_followed) {
  const io::file opened(made_folder() / "refused.h5");
  std::vector<std::string> names;
  for (const auto& d : opened.datasets()) names.push_back(d.path);
  const std::vector<std::string> expected{"/compound", "/fine",      "/more_text", "/null",
                                          "/ragged",   "/reference", "/text",      "/texts"};
  BOOST_TEST(names == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_dataset_is_described) {
  const io::file opened(made_folder() / "layouts.h5");
  const auto d = opened.describe("/all/split");
  BOOST_TEST(d.shape == (std::vector<std::uint64_t>{101, 7, 9}), boost::test_tools::per_element());
  BOOST_TEST(d.chunk_shape == (std::vector<std::uint64_t>{10, 3, 4}), boost::test_tools::per_element());
  BOOST_TEST((d.layout == io::layout::chunked));
  BOOST_TEST(d.element->numpy == "<i4");
  BOOST_TEST(d.type_text == "int32");
  BOOST_TEST_REQUIRE(d.filters.size() == 3);
  BOOST_TEST(d.filters[0].name == "shuffle");
  BOOST_TEST(d.filters[1].name == "deflate");
  BOOST_TEST(d.filters[2].name == "fletcher32");
  BOOST_TEST((d.access == io::access::direct));
}

BOOST_AUTO_TEST_CASE(types_are_described_for_people_and_for_numpy) {
  const io::file opened(made_folder() / "types.h5");
  const auto check = [&](const char* path, const char* text, const char* numpy, penstock::type element) {
    const auto d = opened.describe(path);
    BOOST_TEST_CONTEXT(path) {
      BOOST_TEST(d.type_text == text);
      BOOST_TEST_REQUIRE(d.element.has_value());
      BOOST_TEST(d.element->numpy == numpy);
      BOOST_TEST((d.element->element == element));
    }
  };
  check("/contiguous/f2be", "float16, big-endian", "<f2", penstock::type::float16);
  check("/contiguous/u8be", "uint64, big-endian", "<u8", penstock::type::uint64);
  check("/bool", "enum over int8", "|b1", penstock::type::uint8);
  check("/string", "string of 5 bytes", "|S5", penstock::type::uint8);
  check("/void", "opaque of 6 bytes", "|V6", penstock::type::uint8);
  check("/adc", "int16 (12 bits)", "<i2", penstock::type::int16);
  check("/complex64", "compound {r: float32, i: float32}", "<c8", penstock::type::float32);
  check("/array_type", "array [2x3] of int32", "<i4", penstock::type::int32);
}

BOOST_AUTO_TEST_CASE(sources_of_virtual_datasets_that_are_missing_are_named) {
  const io::file opened(made_folder() / "virtual.h5");
  BOOST_TEST(opened.describe("/absent").missing_sources == std::vector<std::string>{"nowhere.h5:/x"},
             boost::test_tools::per_element());
  BOOST_TEST(opened.describe("/stacked").missing_sources.empty());
}

BOOST_AUTO_TEST_CASE(a_missing_dataset_names_near_ones) {
  const io::file opened(made_folder() / "layouts.h5");
  BOOST_CHECK_EXCEPTION(opened.describe("/gzip/row"), io::error, [](const io::error& e) {
    return has(e.what(), "no such dataset") && has(e.what(), "/gzip/rows") && e.context().dataset == "/gzip/row";
  });
  BOOST_TEST(opened.contains("/gzip/rows"));
  BOOST_TEST(opened.contains("gzip/rows"));
  BOOST_TEST(!opened.contains("/gzip"));
  BOOST_TEST(!opened.contains("/nothing/here"));
}

BOOST_AUTO_TEST_CASE(a_group_names_datasets_that_are_in_it) {
  const io::file opened(made_folder() / "part1.h5");  // /a/x, /b/x, /b/y
  const auto said = [&](const char* path, const char* what) {
    BOOST_CHECK_EXCEPTION(opened.describe(path), io::error, [&](const io::error& e) {
      BOOST_TEST_INFO(e.what());
      return has(e.what(), what) && std::string(e.what()).ends_with(what);
    });
  };
  said("/a", "it is a group, no dataset; in it is /a/x");
  said("/b/", "it is a group, no dataset; in it are /b/x, /b/y");
  said("/", "it is a group, no dataset; in it are /a/x, /b/x, /b/y");
}

// Format specification, IV.A.2.d: a datatype message begins with its version in the upper four bits, and its class;
// little-endian floats of 32 bits go on with these bits and their size. There is no version 9 yet.
BOOST_AUTO_TEST_CASE(a_dataset_that_a_newer_hdf5_wrote_says_so) {
  const auto bytes = bytes_of_file(made_folder() / "part1.h5");
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string message("\x11\x20\x1f\x00\x04\x00\x00\x00", 8);
  std::size_t changed = 0;
  for (auto at = text.find(message); at != text.npos; at = text.find(message, at + 1), ++changed) text[at] = '\x91';
  BOOST_TEST_REQUIRE(changed == 2u);
  const io::file opened(file_of("newer.h5", text));
  for (const auto& info : opened.datasets()) {
    BOOST_TEST(has(info.unreadable, "a newer one wrote it, or its header is damaged") == (info.path != "/b/y"),
               info.path << info.unreadable);
    BOOST_TEST((info.type_text == "unreadable") == (info.path != "/b/y"));
  }
  BOOST_CHECK_EXCEPTION(opened.describe("/b/x"), io::error, [](const io::error& e) {
    BOOST_TEST_INFO(e.what());
    return has(e.what(), "newer.h5:/b/x: it cannot be opened by HDF5 1.") &&
           has(e.what(), "libver=(\"earliest\", \"v110\")");
  });
}

BOOST_AUTO_TEST_SUITE_END()
