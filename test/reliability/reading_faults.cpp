// Damage to files while they are read: with a checksum it is always found, without one only where it does not decode.

#include "fault_table.hpp"
#include "interruptions.hpp"
#include "nth_use.hpp"

#include <penstock/io/file.hpp>
#include <penstock/io/row_reader.hpp>
#include <penstock/io/writer.hpp>

#include <hdf5.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

namespace io = penstock::io;
namespace fs = std::filesystem;
using namespace penstock::test;

namespace {

constexpr std::uint64_t rows = 1024, columns = 16, chunk_rows = 32;

std::vector<float> values() {
  std::vector<float> all(rows * columns);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(i * 7 % 4093);
  return all;
}

/// With nbit, which Penstock does not decode: libhdf5 reads it.
enum class stored_as { plain, fletcher32, gzip, nbit };

/// A file with the dataset /x, gone with the object. Written by libhdf5 itself: Penstock writes no fletcher32.
struct damaged_file {
  fs::path path = fs::temp_directory_path() / ("penstock-damaged-" + std::to_string(::getpid()) + ".h5");

  explicit damaged_file(stored_as how) { write(how); }
  ~damaged_file() { fs::remove(path); }
  damaged_file(const damaged_file&) = delete;
  damaged_file& operator=(const damaged_file&) = delete;

  void write(stored_as how) const {
    const hsize_t shape[] = {rows, columns}, chunk[] = {chunk_rows, columns};
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(2, shape, nullptr), options = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(options, 2, chunk);
    if (how == stored_as::fletcher32) H5Pset_fletcher32(options);
    if (how == stored_as::gzip) H5Pset_deflate(options, 1);
    if (how == stored_as::nbit) H5Pset_nbit(options);
    const hid_t set = H5Dcreate2(file, "/x", H5T_IEEE_F32LE, space, H5P_DEFAULT, options, H5P_DEFAULT);
    const auto all = values();
    H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, all.data());
    H5Dclose(set), H5Pclose(options), H5Sclose(space);
    BOOST_REQUIRE(H5Fclose(file) >= 0);
  }
};

/// All rows in pieces of one chunk and a half, so that chunks are kept and cut; `between` runs before each piece.
std::string read_all(
    const io::row_reader& reader, const std::function<void(std::uint64_t)>& between = [](auto) {}) {
  constexpr std::uint64_t piece = chunk_rows * 3 / 2;
  std::vector<float> found(rows * columns);
  for (std::uint64_t first = 0; first < rows; first += piece) {
    between(first);
    const std::uint64_t count = std::min(piece, rows - first);
    reader.read(first, count,
                std::as_writable_bytes(std::span(found)).subspan(first * columns * 4, count * columns * 4));
  }
  return found == values() ? "right rows" : "wrong rows, unnoticed";
}

/// A name for a file or a folder, which is gone with the object.
struct named_file {
  fs::path path;

  explicit named_file(const char* name)
      : path(fs::temp_directory_path() / ("penstock-" + std::to_string(::getpid()) + "-" + name)) {}
  ~named_file() { fs::remove_all(path); }
  named_file(const named_file&) = delete;
  named_file& operator=(const named_file&) = delete;
};

/// A dataset /v that shows all of /x of the source, and 5 where that is missing.
void write_virtual(const fs::path& path, const fs::path& source) {
  const hsize_t shape[] = {rows, columns};
  const float fill = 5;
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(2, shape, nullptr), options = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_fill_value(options, H5T_NATIVE_FLOAT, &fill);
  H5Pset_virtual(options, space, source.c_str(), "/x", space);
  H5Dclose(H5Dcreate2(file, "/v", H5T_IEEE_F32LE, space, H5P_DEFAULT, options, H5P_DEFAULT));
  H5Pclose(options), H5Sclose(space);
  BOOST_REQUIRE(H5Fclose(file) >= 0);
}

/// That the system failed, and where: nothing else is made of it.
std::function<bool(const outcome&)> names_the_cause(const char* file) {
  return [file](const outcome& how) {
    return how.name == "io::error" && how.says(file) && how.says("Input/output error") && !how.says("no HDF5 file") &&
           !how.says("no such");
  };
}

void try_damage(stored_as how, const std::string& fault, nth_use::damage change,
                std::function<bool(const outcome&)> expected) {
  const damaged_file file(how);
  const auto faults = std::make_shared<nth_use>(std::move(change));
  const std::string stage = how == stored_as::plain        ? "decode: no checksum"
                            : how == stored_as::fletcher32 ? "decode: fletcher32"
                                                           : "decode: gzip";
  const auto run = [&](std::int64_t n) {
    const io::row_reader reader({{file.path, "/x"}}, {.faults = faults});
    faults->arm(n);
    const outcome how_it_ended = outcome_of([&] { return read_all(reader); });
    faults->disarm();
    // The same reader again: what is damaged must not have been kept.
    if (!how_it_ended.sentence.empty()) BOOST_TEST(read_all(reader) == "right rows");
    return how_it_ended;
  };
  try_positions({.stage = stage,
                 .fault = fault,
                 .run = run,
                 .happened = [&] { return faults->happened(); },
                 .since = [&] { return faults->since(); },
                 .expected = std::move(expected)});
}

bool names_the_chunk(const outcome& how) {
  return how.name == "io::error" && how.says("penstock-damaged") && how.says("/x") && how.says("rows ");
}

void flip_a_bit(std::span<std::byte> bytes) { bytes[bytes.size() / 2] ^= std::byte{4}; }
void fill_with_garbage(std::span<std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + 11);
}

/// Does something to the file itself after the reader has read up to a row.
void try_change(const std::string& fault, stored_as how, const std::function<void(const fs::path&)>& change,
                std::function<bool(const outcome&)> expected) {
  bool changed = false;
  std::chrono::steady_clock::time_point since;
  try_positions({.stage = how == stored_as::nbit ? "read by libhdf5: the file itself" : "read: the file itself",
                 .fault = fault,
                 .run =
                     [&](std::int64_t n) {
                       const damaged_file file(how);
                       changed = false;
                       const io::row_reader reader({{file.path, "/x"}}, {.open_files = 1});
                       std::int64_t piece = 0;
                       return outcome_of([&] {
                         return read_all(reader, [&](auto) {
                           if (piece++ == n) {
                             change(file.path);
                             since = std::chrono::steady_clock::now();
                             changed = true;
                           }
                         });
                       });
                     },
                 .happened = [&] { return changed; },
                 .since = [&] { return since; },
                 .expected = std::move(expected)});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(reading_faults, *boost::unit_test::timeout(600))

BOOST_AUTO_TEST_CASE(damage_is_always_found_where_the_format_has_a_checksum) {
  try_damage(stored_as::fletcher32, "a flipped bit", flip_a_bit, names_the_chunk);
  try_damage(stored_as::fletcher32, "garbage", fill_with_garbage, names_the_chunk);
  // A stream that seems longer than its chunk is left to libhdf5, which reads the file anew: there it is healthy.
  const auto found = [](const outcome& how) { return names_the_chunk(how) || how.name == "right rows"; };
  try_damage(stored_as::gzip, "a flipped bit", flip_a_bit, found);
  try_damage(stored_as::gzip, "garbage", fill_with_garbage, found);
}

BOOST_AUTO_TEST_CASE(without_a_checksum_it_is_not_found_and_the_table_says_so) {
  try_damage(stored_as::plain, "a flipped bit", flip_a_bit,
             [](const outcome& how) { return how.name == "wrong rows, unnoticed"; });
}

BOOST_AUTO_TEST_CASE(a_file_cut_while_it_is_read_is_an_error_and_one_that_is_replaced_is_read_as_it_was) {
  const auto cut = [](const fs::path& path) { fs::resize_file(path, fs::file_size(path) / 8); };
  const auto replace = [](const fs::path& path) {
    const fs::path other = path.string() + ".other";
    std::ofstream(other) << "not HDF5";
    fs::rename(other, path);
  };
  try_change("truncated", stored_as::gzip, cut, [](const outcome& how) {
    return names_the_chunk(how) && (how.says("truncated") || how.says("replaced"));
  });
  // What libhdf5 has in its cache of chunks is right.
  try_change("truncated", stored_as::nbit, cut,
             [](const outcome& how) { return how.name == "right rows" || names_the_chunk(how); });
  for (const auto how : {stored_as::gzip, stored_as::nbit})
    try_change("replaced", how, replace, [](const outcome& found) {
      return found.name == "right rows" ||
             (names_the_chunk(found) && (found.says("replaced") || found.says("no HDF5 file")));
    });
}

BOOST_AUTO_TEST_CASE(what_libhdf5_reads_fails_as_a_whole_or_gives_the_rows) {
  const damaged_file file(stored_as::nbit);
  BOOST_TEST_REQUIRE((io::file(file.path).describe("/x").access == io::access::locked));
  const auto fails = [&](const char* fault, penstock::fault what, std::function<bool(const outcome&)> expected) {
    const auto faults = std::make_shared<nth_use>(penstock::fault_site::read_file, what);
    try_positions({.stage = "read by libhdf5",
                   .fault = fault,
                   .run =
                       [&](std::int64_t n) {
                         const io::row_reader reader({{file.path, "/x"}}, {.faults = faults});
                         faults->arm(n);
                         const outcome how = outcome_of([&] { return read_all(reader); });
                         faults->disarm();
                         BOOST_TEST(read_all(reader) == "right rows");
                         return how;
                       },
                   .happened = [&] { return faults->happened(); },
                   .since = [&] { return faults->since(); },
                   .expected = std::move(expected)});
  };
  const auto right = [](const outcome& how) { return how.name == "right rows"; };
  const auto told = [](const outcome& how) { return how.name == "io::error" && how.says("penstock-damaged"); };
  fails("EIO", {.error = EIO}, told);
  fails("the file ends", {.at_most = 0}, told);
  fails("EINTR", {.error = EINTR}, right);
  fails("short read", {.at_most = 3}, right);
}

/// Of chunks that Penstock reads itself, and of those that libhdf5 reads through a file driver.
BOOST_AUTO_TEST_CASE(calls_that_signals_interrupt_are_made_again_and_short_reads_are_gone_on_with) {
  for (const auto how : {stored_as::gzip, stored_as::nbit}) {
    const damaged_file file(how);
    const std::string stage = how == stored_as::gzip ? "read by Penstock" : "read by libhdf5";
    const auto reads = [&](penstock::fault_seam faults) {
      const io::row_reader reader({{file.path, "/x"}}, {.faults = std::move(faults)});
      return read_all(reader) == "right rows";
    };
    check_that_interrupted_calls_are_made_again(stage + ": open", penstock::fault_site::open_file, reads);
    check_that_interrupted_calls_are_made_again(stage + ": read", penstock::fault_site::read_file, reads);
    check_that_short_calls_are_gone_on_with(stage, penstock::fault_site::read_file, 7, reads);
  }
  const damaged_file file(stored_as::plain);
  const auto describes = [&](penstock::fault_seam faults) {
    return io::file(file.path, std::move(faults)).describe("/x").shape == std::vector<std::uint64_t>{rows, columns};
  };
  check_that_interrupted_calls_are_made_again("metadata: open", penstock::fault_site::open_file, describes);
  check_that_interrupted_calls_are_made_again("metadata: read", penstock::fault_site::read_file, describes);
  check_that_short_calls_are_gone_on_with("metadata", penstock::fault_site::read_file, 7, describes);
}

/// What is no HDF5 file is said only of a file that was read.
BOOST_AUTO_TEST_CASE(a_file_whose_format_cannot_be_read_is_not_taken_for_another) {
  const named_file file("archive.h5");
  const std::string zip = std::string("PK\x03\x04", 4) + std::string(2000, 'z');
  std::ofstream(file.path, std::ios::binary) << zip;
  const auto faults = std::make_shared<nth_use>(penstock::fault_site::read_file, penstock::fault{.error = EIO});
  std::int64_t reads = 0;
  try_positions({.stage = "open: format",
                 .fault = "EIO",
                 .run =
                     [&](std::int64_t n) {
                       faults->arm(n);
                       reads = n;
                       const outcome how = outcome_of([&] {
                         const io::file opened(file.path, faults);
                         return "opened";
                       });
                       faults->disarm();
                       if (faults->happened()) return how;
                       BOOST_TEST(how.says("a zip archive"), how.sentence);
                       return outcome{"told what it is", {}};
                     },
                 .happened = [&] { return faults->happened(); },
                 .since = [&] { return faults->since(); },
                 .expected = names_the_cause("archive.h5")});
  BOOST_TEST(reads == 4);  // the signature at bytes 0, 512 and 1024, and the start
  check_that_interrupted_calls_are_made_again("format", penstock::fault_site::read_file,
                                              [&](penstock::fault_seam some) {
                                                return outcome_of([&] {
                                                         const io::file opened(file.path, std::move(some));
                                                         return "opened";
                                                       })
                                                    .says("a zip archive");
                                              });
}

/// Where a source is there, and cannot be read, fill values would stand for its rows.
BOOST_AUTO_TEST_CASE(a_source_of_a_virtual_dataset_that_cannot_be_read_is_not_missing) {
  const damaged_file source(stored_as::gzip);
  const named_file folder("virtual");  // not the source's: there libhdf5 looks for it next
  fs::create_directory(folder.path);
  const fs::path file = folder.path / "virtual.h5";
  write_virtual(file, source.path);
  const auto reads = [&](penstock::fault_seam faults) -> std::string {
    const io::row_reader reader({{file, "/v"}}, {.allow_missing_sources = true, .faults = std::move(faults)});
    return read_all(reader);
  };
  const auto describes = [&](penstock::fault_seam faults) -> std::string {
    const io::file opened(file, std::move(faults));
    return opened.contains("/v") && opened.describe("/v").missing_sources.empty() ? "described" : "missing";
  };
  BOOST_TEST_REQUIRE(reads(nullptr) == "right rows");
  BOOST_TEST_REQUIRE(describes(nullptr) == "described");
  const auto named = names_the_cause("virtual.h5");
  const auto fails = [&](const char* stage, const auto& work, penstock::fault_site site, int code,
                         std::vector<std::string> names, std::function<bool(const outcome&)> expected) {
    const auto faults = std::make_shared<nth_use>(site, penstock::fault{.error = code}, std::move(names));
    try_positions({.stage = stage,
                   .fault = code == EIO ? "EIO" : "EINTR",
                   .run =
                       [&](std::int64_t n) {
                         faults->arm(n);
                         const outcome how = outcome_of([&] { return work(faults); });
                         faults->disarm();
                         BOOST_TEST((n > 0 || faults->happened()));
                         return how;
                       },
                   .happened = [&] { return faults->happened(); },
                   .since = [&] { return faults->since(); },
                   .expected = std::move(expected)});
  };
  const std::vector<std::string> sources{source.path.string()};
  for (const auto site : {penstock::fault_site::open_file, penstock::fault_site::read_file}) {
    const char* const opening = site == penstock::fault_site::open_file ? "a source: open" : "a source: read";
    // What libhdf5 then reads in Penstock's place is right.
    const auto told = [&](const outcome& how) { return how.name == "right rows" || named(how); };
    fails(opening, reads, site, EIO, sources, told);
    fails(opening, reads, site, EINTR, sources, [](const outcome& how) { return how.name == "right rows"; });
    fails(opening, describes, site, EIO, sources, named);
    fails(opening, describes, site, EINTR, sources, [](const outcome& how) { return how.name == "described"; });
  }
  fails("a virtual dataset: read", describes, penstock::fault_site::read_file, EIO, {}, named);
  fails("a virtual dataset: read", describes, penstock::fault_site::read_file, EINTR, {},
        [](const outcome& how) { return how.name == "described"; });
}

/// A group on the way to a dataset is read when it is looked for.
BOOST_AUTO_TEST_CASE(a_dataset_whose_groups_cannot_be_read_is_not_missing) {
  const named_file file("groups.h5");
  {
    io::writer to(file.path);
    for (const char* const name : {"/a/b/c[d]", "/a/b/e", "/f/g"}) to.create(name, penstock::type::int32, {5});
    to.commit();
  }
  for (const char* const name : {"/a/b/c[d]", "/a/b/e", "/f/g"}) {
    const auto faults = std::make_shared<nth_use>(penstock::fault_site::read_file, penstock::fault{.error = EIO});
    try_positions({.stage = "open: groups",
                   .fault = "EIO",
                   .run =
                       [&](std::int64_t n) {
                         std::optional<io::file> opened;
                         faults->arm(n);
                         const outcome how = outcome_of([&] {
                           opened.emplace(file.path, faults);
                           if (!opened->contains(name)) return "missing";
                           return opened->describe(name).shape.size() == 1 ? "described" : "wrong";
                         });
                         faults->disarm();
                         if (opened) BOOST_TEST(opened->contains(name));  // a failure is not kept
                         return how;
                       },
                   .happened = [&] { return faults->happened(); },
                   .since = [&] { return faults->since(); },
                   .expected = names_the_cause("groups.h5")});
  }
}

BOOST_AUTO_TEST_CASE(metadata_that_cannot_be_read_is_an_error_that_names_the_file) {
  const damaged_file file(stored_as::gzip);
  const auto faults = std::make_shared<nth_use>(penstock::fault_site::read_file, penstock::fault{.error = EIO});
  try_positions(
      {.stage = "open: metadata",
       .fault = "EIO",
       .run =
           [&](std::int64_t n) {
             faults->arm(n);
             const outcome how = outcome_of([&] {
               const io::file opened(file.path, faults);
               const auto found = opened.describe("/x");
               const bool right = found.shape == std::vector<std::uint64_t>{rows, columns} && found.stored_bytes > 0;
               return right ? "right shape" : "wrong";
             });
             faults->disarm();
             return how;
           },
       .happened = [&] { return faults->happened(); },
       .since = [&] { return faults->since(); },
       .expected = names_the_cause("penstock-damaged"),
       .afterwards =
           [&] {
             const io::row_reader reader({{file.path, "/x"}});
             BOOST_TEST(read_all(reader) == "right rows");
           }});
}

BOOST_AUTO_TEST_SUITE_END()
