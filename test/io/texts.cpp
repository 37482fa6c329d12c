// Texts of variable length: the same as h5py's, whatever refers to them and wherever they lie; and whatever is damaged
// there.

#include "../support/damaged_chunks.hpp"
#include "library_reader.hpp"
#include "made_files.hpp"
#include "text_reference.hpp"

#include <penstock/io/attribute.hpp>
#include <penstock/io/error.hpp>
#include <penstock/io/row_reader.hpp>

#include <boost/test/unit_test.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace io = penstock::io;
namespace fs = std::filesystem;
using namespace penstock::io::test;

namespace {

/// What text_files.py wrote, gone at the end of the program.
const fs::path& texts_folder() {
  static const struct made {
    made() : path(fs::temp_directory_path() / ("penstock-texts-" + std::to_string(::getpid()))) {
      fs::create_directories(path);
      const std::string script = PENSTOCK_TEST_IO_SOURCE "/text_files.py";
      const auto command = "/usr/bin/python3 " + script + " " + path.string() + " " PENSTOCK_TEST_CORPUS;
      BOOST_TEST_REQUIRE(std::system(command.c_str()) == 0);
    }
    ~made() { fs::remove_all(path); }
    fs::path path;
  } folder;
  return folder.path;
}

nlohmann::json json_of(const fs::path& path) {
  std::ifstream in(path);
  return nlohmann::json::parse(in);
}

std::vector<std::int32_t> codes_of(const io::row_reader& reader, std::uint64_t first, std::uint64_t count) {
  std::vector<std::int32_t> codes(count * reader.row_bytes() / sizeof(std::int32_t));
  reader.read(first, count, std::as_writable_bytes(std::span(codes)));
  return codes;
}

std::string in_hexadecimal(const std::string& text) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string all;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    all += digits[byte >> 4];
    all += digits[byte & 15];
  }
  return all;
}

std::string text_of(const io::row_reader& reader, std::uint64_t row) {
  return reader.class_names().at(static_cast<std::size_t>(codes_of(reader, row, 1).at(0)));
}

bool is_damage(const io::error& e, const fs::path& file, const std::string& dataset) {
  return e.context().damaged && e.context().file == file.string() && e.context().dataset == dataset &&
         std::string(e.what()).find('\n') == std::string::npos;
}

bool is_damaged(const io::row_reader& reader, std::uint64_t row, const fs::path& file, const std::string& dataset) {
  try {
    codes_of(reader, row, 1);
    return false;
  } catch (const io::error& e) {
    return is_damage(e, file, dataset) && e.context().rows.first == row && e.context().rows.count == 1;
  }
}

/// The file with one bit of it flipped; every one, one after another.
void with_each_bit_flipped(const std::string& name, std::uint64_t first, std::uint64_t bytes,
                           const std::function<void(const fs::path&, const std::string& which)>& f) {
  const auto path = texts_folder() / ("flipped_" + name);
  fs::copy_file(texts_folder() / name, path, fs::copy_options::overwrite_existing);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  for (std::uint64_t at = first; at < first + bytes; ++at) {
    file.seekg(static_cast<std::streamoff>(at));
    const auto was = static_cast<char>(file.get());
    const auto put = [&](char c) {
      file.seekp(static_cast<std::streamoff>(at));
      file.put(c).flush();
    };
    for (int bit = 0; bit < 8; ++bit) {
      put(static_cast<char>(was ^ (1 << bit)));
      f(path, "byte " + std::to_string(at) + " bit " + std::to_string(bit));
    }
    put(was);
  }
}

/// Row n of bits.h5 is n + 3 times t: whoever takes the text of another row has a wrong one. How many rows are damaged;
/// all others must be right.
int damaged_rows(const fs::path& path) {
  try {
    const io::row_reader reader({{.file = path, .dataset = "/x"}});
    int damaged = 0;
    for (std::uint64_t row = 0; row < reader.rows(); ++row)
      if (is_damaged(reader, row, path, "/x"))
        ++damaged;
      else
        BOOST_TEST(text_of(reader, row) == std::string(row + 3, 't'));
    return damaged;
  } catch (const io::error& e) {
    BOOST_TEST(is_damage(e, path, "/x"), e.what());
    return 24;
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(texts)

BOOST_AUTO_TEST_CASE(texts_are_those_that_h5py_reads) {
  int compared = 0;
  const auto all = json_of(texts_folder() / "texts.json");
  for (const auto& [name, expected] : all.items()) {
    const auto colon = name.rfind(':');
    const fs::path file = name.substr(0, colon);
    const io::row_reader reader({{.file = file, .dataset = name.substr(colon + 1)}});
    std::vector<std::string> found;
    for (const auto code : codes_of(reader, 0, reader.rows()))
      found.push_back(in_hexadecimal(reader.class_names().at(static_cast<std::size_t>(code))));
    BOOST_TEST((found == expected.get<std::vector<std::string>>()), name);
    ++compared;
  }
  BOOST_TEST(compared >= 52);
}

/// H5Dget_type says what values take in memory, where texts are pointers of 8 bytes.
BOOST_AUTO_TEST_CASE(numbers_beside_texts_in_compounds_are_read_from_where_they_lie) {
  for (const std::string table : {"/table", "/table_in_chunks", "/whole_table"}) {
    const io::row_reader a({{.file = texts_folder() / "earliest.h5", .dataset = table + "[a]"}}),
        b({{.file = texts_folder() / "earliest.h5", .dataset = table + "[b]"}});
    std::vector<double> quarters(200);
    b.read(0, 200, std::as_writable_bytes(std::span(quarters)));
    const auto numbers = codes_of(a, 0, 200);
    for (std::size_t row = 0; row < 200; ++row) {
      BOOST_TEST(numbers[row] == static_cast<int>(row), table);
      BOOST_TEST(quarters[row] == static_cast<double>(row) / 4, table);
    }
    BOOST_TEST((a.segments()[0].info.access == io::access::direct), table);
  }
}

/// H5Dread does not follow what it gives so: it is what lies in the file.
BOOST_AUTO_TEST_CASE(libhdf5_gives_references_as_they_are_stored) {
  const auto path = texts_folder() / "bits.h5";
  const auto at = json_of(texts_folder() / "bits.json").at("references").get<std::size_t>();
  const auto file = bytes_of_file(path);
  const std::vector<std::byte> stored(file.begin() + static_cast<std::ptrdiff_t>(at),
                                      file.begin() + static_cast<std::ptrdiff_t>(at) + 24 * 16);
  const auto opened = io::open_hdf5(path);
  const io::open_dataset dataset(opened.native(), "/x");
  const auto d = io::describe_dataset(dataset, io::text_form::references);
  io::box all;
  all.rank = 1;
  all.count[0] = 24;
  std::vector<std::byte> given(stored.size());
  io::library_read(dataset.id.native(), d, all, given.data());
  BOOST_TEST((given == stored));
  // A text in memory is a pointer: to that leads no conversion.
  const penstock::io::library_guard guard;
  const io::type_id text(H5Tcopy(H5T_C_S1)), reference = io::reference_memory(sizeof(char*));
  H5Tset_size(text.native(), H5T_VARIABLE);
  const char* pointer = "text";
  BOOST_TEST(H5Tconvert(text.native(), reference.native(), 1, &pointer, nullptr, H5P_DEFAULT) < 0);
}

BOOST_AUTO_TEST_CASE(each_flipped_bit_of_a_reference_damages_its_row_alone) {
  const auto at = json_of(texts_folder() / "bits.json").at("references").get<std::uint64_t>();
  for (const std::uint64_t row : {0, 13, 23})
    with_each_bit_flipped("bits.h5", at + 16 * row, 16, [&](const fs::path& path, const std::string& which) {
      BOOST_TEST(damaged_rows(path) == 1, which);
    });
}

BOOST_AUTO_TEST_CASE(each_flipped_bit_of_the_heap_is_an_error_or_the_right_text) {
  const auto where = json_of(texts_folder() / "bits.json");
  BOOST_TEST_REQUIRE(where.at("objects").size() == 26);  // 24 rows, an attribute, free space
  int all = 0, none = 0;
  const auto count = [&](const fs::path& path, const std::string&) {
    const int damaged = damaged_rows(path);
    all += damaged == 24;
    none += damaged == 0;
  };
  with_each_bit_flipped("bits.h5", where.at("heap").get<std::uint64_t>(), 16, count);
  // Of each object index, count of references, reserved bytes, size.
  for (std::size_t n = 0; n < 26; n += n < 24 ? 4 : 1)
    with_each_bit_flipped("bits.h5", where.at("objects").at(n).get<std::uint64_t>(), 16, count);
  BOOST_TEST(all > 64);  // signature, version, size
  BOOST_TEST(none > 0);  // reserved bytes, counts of references
}

BOOST_AUTO_TEST_CASE(each_flipped_bit_of_an_attributes_reference_is_an_error_or_the_right_text) {
  const std::string right = "a text " + std::string(90, 'b');
  BOOST_TEST(io::read_attribute(texts_folder() / "bits.h5", "/", "text").value() == right);
  BOOST_TEST(io::read_attribute(texts_folder() / "narrow.h5", "/", "text").value() == "of an attribute");
  const auto at = json_of(texts_folder() / "bits.json").at("attribute").get<std::uint64_t>();
  int errors = 0;
  with_each_bit_flipped("bits.h5", at, 16, [&](const fs::path& path, const std::string& which) {
    try {
      BOOST_TEST(io::read_attribute(path, "/", "text").value() == right, which);
    } catch (const io::error& e) {
      BOOST_TEST(is_damage(e, path, "/"), which);
      ++errors;
    }
  });
  BOOST_TEST(errors == 128);
}

/// libhdf5 1.10.8 writes 200,000 bytes to memory for one; takes 2 GB for each row; 3.2 GB for all.
BOOST_AUTO_TEST_CASE(what_headers_claim_of_texts_takes_no_memory,
                     *boost::unit_test::precondition(memory_can_be_measured)) {
  const auto in_child = [](const std::function<bool()>& f) {
    const auto child = ::fork();
    if (child == 0) {
      std::size_t pages = 0;
      std::ifstream("/proc/self/statm") >> pages;
      const rlim_t most = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + (std::size_t{128} << 20);
      const rlimit memory{most, most};
      ::setrlimit(RLIMIT_AS, &memory);
      ::alarm(60);
      bool right = false;
      try {
        right = f();
      } catch (const std::exception&) {
      }
      ::_exit(right ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status == 0;
  };
  for (const std::string name : {"length_1.h5", "length_2e9.h5", "heap_of_none.h5"}) {
    const auto path = texts_folder() / name;
    BOOST_TEST(in_child([&] {
                 try {
                   io::row_reader({{.file = path, .dataset = "/x"}});
                   return false;
                 } catch (const io::error& e) {
                   return is_damage(e, path, "/x");
                 }
               }),
               name);
  }
  BOOST_TEST(in_child([] {
    const io::row_reader reader({{.file = texts_folder() / "repeated.h5", .dataset = "/x"}});
    return reader.class_names() == std::vector<std::string>{std::string(200000, 'a')} &&
           text_of(reader, 16383).size() == 200000;
  }));
  BOOST_TEST(in_child([] {  // 2^28 texts of which none is stored
    const io::row_reader reader({{.file = texts_folder() / "claimed.h5", .dataset = "/x"}});
    std::size_t held = 0;
    for (const auto& item : reader.memory({})) held += item.bytes;
    return text_of(reader, reader.rows() - 1).empty() && held < (1 << 20);
  }));
  for (const std::string dataset : {"/one_chunk", "/shown"})  // 2^28 texts of which few are stored
    BOOST_TEST(in_child([&] {
                 try {
                   io::row_reader({{.file = texts_folder() / "claimed.h5", .dataset = dataset}});
                   return false;
                 } catch (const io::error& e) {
                   return std::string(e.what()).find("claimed.h5:" + dataset +
                                                     ": it claims 268435456 texts, of which") != std::string::npos;
                 }
               }),
               dataset);
}

BOOST_AUTO_TEST_CASE(damaged_texts_are_named_by_their_rows_and_others_are_read) {
  const auto path = texts_folder() / "damaged.h5";
  const io::row_reader plain({{.file = path, .dataset = "/x"}}), packed({{.file = path, .dataset = "/gzip"}});
  for (std::uint64_t row = 0; row < 100; ++row) {
    const std::string expected(row % 3 + 1, "abc"[row % 3]);
    BOOST_TEST(is_damaged(plain, row, path, "/x") == (row == 42 || row == 43 || row == 49));
    BOOST_TEST(is_damaged(packed, row, path, "/gzip") == (row >= 70 && row < 80));
    if (row < 42 || row > 49) BOOST_TEST(text_of(plain, row) == expected);
    if (row < 70 || row > 79) BOOST_TEST(text_of(packed, row) == expected);
  }
  BOOST_CHECK_EXCEPTION(codes_of(plain, 40, 20), io::error, [](const io::error& e) {
    return e.context().rows.first == 42 && e.context().rows.count == 2 &&
           std::string(e.what()).find("/x rows 42 to 43: a text of ") != std::string::npos;
  });
  BOOST_CHECK_EXCEPTION(codes_of(packed, 0, 100), io::error, [](const io::error& e) {
    return e.context().rows.first == 70 && e.context().rows.count == 10;
  });
}

/// Before libhdf5 follows anything in it.
BOOST_AUTO_TEST_CASE(a_virtual_dataset_with_damaged_texts_in_its_sources_is_refused) {
  const auto path = texts_folder() / "damaged.h5";
  BOOST_CHECK_EXCEPTION(io::row_reader({{.file = path, .dataset = "/virtual"}}), io::error, [&](const io::error& e) {
    return is_damage(e, path, "/virtual") &&
           std::string(e.what()).find("its source .:x: a text of") != std::string::npos;
  });
}

BOOST_AUTO_TEST_SUITE_END()
