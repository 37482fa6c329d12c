#include <penstock/io/attribute.hpp>
#include <penstock/io/error.hpp>
#include <penstock/io/file.hpp>
#include <penstock/io/row_reader.hpp>
#include <penstock/io/seal.hpp>
#include <penstock/io/writer.hpp>

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <hdf5.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <numeric>
#include <string>

namespace io = penstock::io;
namespace fs = std::filesystem;
using penstock::type;

namespace {

struct folder {
  fs::path path = fs::temp_directory_path() / ("penstock-writer-" + std::to_string(::getpid()));
  folder() { fs::create_directories(path); }
  ~folder() { fs::remove_all(path); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator{}));
  }
};

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

/// What h5py makes of `expression` over the open file f.
std::string h5py(const fs::path& file, const std::string& expression) {
  const fs::path out = file.string() + ".txt";
  const std::string command = "/usr/bin/python3 -c \"import h5py; f = h5py.File('" + file.string() + "', 'r'); print(" +
                              expression + ")\" > " + out.string();
  BOOST_TEST_REQUIRE(std::system(command.c_str()) == 0);
  std::ifstream text(out);
  std::string line;
  std::getline(text, line);
  return line;
}

struct failing final : penstock::fault_injector {
  penstock::fault_site site;
  explicit failing(penstock::fault_site s) : site(s) {}
  penstock::fault before(penstock::fault_site asked, std::string_view, std::uint64_t, std::size_t) override {
    penstock::fault f;
    if (asked == site) f.error = ENOSPC;
    return f;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(writer)

BOOST_FIXTURE_TEST_CASE(h5py_reads_what_was_written_in_pieces, folder) {
  const fs::path file = path / "a.h5";
  io::writer to(file);
  std::vector<std::uint16_t> counted(300);
  std::iota(counted.begin(), counted.end(), std::uint16_t{0});
  to.create("/deep/packed", type::uint16, {100, 3}, {.chunk_shape = {7, 2}, .deflate_level = 4, .shuffle = true});
  to.create("/plain", type::uint16, {100, 3});
  for (std::uint64_t row = 0; row < 100; row += 10)
    for (const char* name : {"/deep/packed", "/plain"})
      to.write_rows(name, row, 10, bytes_of(counted).subspan(row * 6, 60));
  to.attribute("/deep", "note", "two lines\nin UTF-8: \u00b5");
  to.commit();
  BOOST_TEST(h5py(file,
                  "(f['deep/packed'][:].ravel() == range(300)).all(), f['deep/packed'].chunks, "
                  "f['deep/packed'].compression_opts, f['deep/packed'].shuffle") == "True (7, 2) 4 True");
  BOOST_TEST(h5py(file, "(f['plain'][:].ravel() == range(300)).all(), f['plain'].chunks") == "True None");
  BOOST_TEST(h5py(file, "ascii(f['deep'].attrs['note'])") == "'two lines\\nin UTF-8: \\xb5'");
  BOOST_TEST(io::read_attribute(file, "/deep", "note").value() == "two lines\nin UTF-8: \u00b5");
  BOOST_TEST(!io::read_attribute(file, "/deep", "other").has_value());
  BOOST_TEST(!io::read_attribute(file, "/nowhere/at/all", "note").has_value());
}

BOOST_FIXTURE_TEST_CASE(chunks_that_the_caller_encodes_are_stored_as_they_are, folder) {
  const fs::path file = path / "a.h5";
  io::writer to(file);
  std::vector<std::uint16_t> counted(12);
  std::iota(counted.begin(), counted.end(), std::uint16_t{0});
  to.create("/x", type::uint16, {5, 2}, {.chunk_shape = {3, 2}, .deflate_level = 4});
  // zlib.compress() of Python, of the values 0 to 5; the second chunk, which the shape cuts, is not compressed.
  const std::vector<unsigned char> packed{0x78, 0xda, 0x63, 0x60, 0x60, 0x64, 0x60, 0x62, 0x60, 0x66,
                                          0x60, 0x61, 0x60, 0x65, 0x00, 0x00, 0x00, 0x52, 0x00, 0x10};
  to.write_encoded_chunk("/x", 0, 0, bytes_of(packed));
  to.write_encoded_chunk("/x", 3, 1, bytes_of(counted).subspan(12));
  BOOST_CHECK_THROW(to.write_encoded_chunk("/x", 2, 0, bytes_of(packed)), std::invalid_argument);
  BOOST_CHECK_THROW(to.write_encoded_chunk("/x", 6, 0, bytes_of(packed)), std::invalid_argument);
  to.create("/split", type::uint16, {5, 2}, {.chunk_shape = {3, 1}});
  BOOST_CHECK_THROW(to.write_encoded_chunk("/split", 0, 0, bytes_of(packed)), std::invalid_argument);
  to.commit();
  BOOST_TEST(h5py(file, "(f['x'][:].ravel() == range(10)).all()") == "True");
}

BOOST_FIXTURE_TEST_CASE(every_type_comes_back_bit_for_bit, folder) {
  const fs::path file = path / "types.h5";
  std::vector<std::byte> pattern(64);
  for (std::size_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<std::byte>(i * 3 + 1);
  io::writer to(file);
  for (int t = 0; t <= static_cast<int>(type::float64); ++t) {
    const auto element = static_cast<type>(t);
    const std::uint64_t rows = pattern.size() / penstock::size_of(element);
    to.create("/" + std::string(penstock::name_of(element)), element, {rows});
    to.write_rows("/" + std::string(penstock::name_of(element)), 0, rows, pattern);
  }
  to.commit();
  for (int t = 0; t <= static_cast<int>(type::float64); ++t) {
    const auto element = static_cast<type>(t);
    if (element == type::bfloat16) continue;  // libhdf5 has no such type of its own; readers may widen it
    const io::row_reader reader({{file, "/" + std::string(penstock::name_of(element))}});
    BOOST_TEST((reader.element().element == element));
    std::vector<std::byte> back(pattern.size());
    reader.read(0, reader.rows(), back);
    BOOST_TEST(back == pattern, penstock::name_of(element));
  }
}

BOOST_FIXTURE_TEST_CASE(no_times_are_stored_so_that_the_same_calls_give_the_same_bytes, folder) {
  const auto written = [&](const char* name) {
    io::writer to(path / name);
    to.create("/group/chunked", type::int16, {100}, {.chunk_shape = {10}, .deflate_level = 1});
    to.create("/whole", type::float32, {3, 2});
    to.commit();
    std::ifstream file(path / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string first = written("first.h5");
  BOOST_TEST((written("second.h5") == first));
  const hid_t file = H5Fopen((path / "first.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  BOOST_TEST_REQUIRE(file >= 0);
  for (const char* name : {"/group/chunked", "/whole"}) {
    H5O_info_t info{};
    BOOST_TEST(H5Oget_info_by_name2(file, name, &info, H5O_INFO_TIME, H5P_DEFAULT) >= 0);
    BOOST_TEST(info.mtime == 0);
    BOOST_TEST(info.ctime == 0);
  }
  H5Fclose(file);
}

BOOST_FIXTURE_TEST_CASE(without_commit_nothing_is_left_and_the_older_file_stays, folder) {
  const fs::path file = path / "kept.h5";
  std::ofstream(file) << "older";
  {
    io::writer to(file);
    to.create("/x", type::int8, {3});
  }
  BOOST_TEST(files() == 1u);
  std::string text;
  std::ifstream(file) >> text;
  BOOST_TEST(text == "older");
}

BOOST_FIXTURE_TEST_CASE(a_failing_disk_leaves_no_file_under_the_final_name, folder) {
  using penstock::fault_site;
  for (const auto site :
       {fault_site::open_file, fault_site::write_file, fault_site::sync_file, fault_site::rename_file}) {
    const fs::path file = path / "never.h5";
    const auto write = [&] {
      io::writer to(file, std::make_shared<failing>(site));
      to.create("/x", type::int8, {3});
      to.write_rows("/x", 0, 3, bytes_of(std::vector<std::int8_t>{1, 2, 3}));
      to.commit();
    };
    BOOST_CHECK_EXCEPTION(write(), io::error, [&](const io::error& e) {
      return e.context().system == ENOSPC && e.context().file == file.string();
    });
    BOOST_TEST(files() == 0u);
  }
}

BOOST_FIXTURE_TEST_CASE(a_writer_whose_commit_failed_says_so_whatever_is_asked_of_it, folder) {
  io::writer to(path / "once.h5", std::make_shared<failing>(penstock::fault_site::rename_file));
  to.create("/x", type::int8, {3}, {.chunk_shape = {3}});
  BOOST_CHECK_THROW(to.commit(), io::error);
  const auto bytes = bytes_of(std::vector<std::int8_t>{1, 2, 3});
  const std::function<void()> uses[] = {[&] { to.commit(); },
                                        [&] { to.commit_sealed(); },
                                        [&] { to.create("/y", type::int8, {3}); },
                                        [&] { to.attribute("/x", "name", "text"); },
                                        [&] { to.write_rows("/x", 0, 3, bytes); },
                                        [&] { to.write_encoded_chunk("/x", 0, 0, bytes); }};
  for (const auto& use : uses)
    BOOST_CHECK_EXCEPTION(use(), std::invalid_argument, [](const std::invalid_argument& e) {
      return std::string(e.what()).find("with or without success") != std::string::npos;
    });
}

BOOST_FIXTURE_TEST_CASE(what_a_killed_writer_left_goes_with_the_next_one_of_that_name, folder) {
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  const auto left = [&](const std::string& name, pid_t process) {
    const fs::path file = path / (name + ".partial-" + std::to_string(process));
    std::ofstream(file) << "half";
    return file;
  };
  // Another process may have the number by now.
  const fs::path stale = left("b.h5", gone), taken = left("b.h5", ::getppid()), other = left("bb.h5", gone);
  const fs::path no_number = path / "b.h5.partial-of-mine";
  std::ofstream(no_number) << "half";
  // On another machine that process may live, and hold a lock.
  const int lock = ::open(stale.c_str(), O_RDONLY);
  ::flock(lock, LOCK_SH);
  { const io::writer to(path / "b.h5"); }
  BOOST_TEST(fs::exists(stale));
  BOOST_TEST(!fs::exists(taken));
  ::close(lock);
  { const io::writer to(path / "b.h5"); }
  BOOST_TEST(!fs::exists(stale));
  BOOST_TEST(fs::exists(other));
  BOOST_TEST(fs::exists(no_number));
}

BOOST_FIXTURE_TEST_CASE(a_writer_holds_a_lock_on_what_it_writes, folder) {
  const io::writer to(path / "b.h5");
  const int file = ::open((path / ("b.h5.partial-" + std::to_string(::getpid()))).c_str(), O_RDONLY);
  BOOST_TEST(::flock(file, LOCK_EX | LOCK_NB) != 0);
  ::close(file);
}

BOOST_FIXTURE_TEST_CASE(contradicting_arguments_are_refused, folder) {
  io::writer to(path / "b.h5");
  const std::vector<std::int8_t> three{1, 2, 3};
  BOOST_CHECK_THROW(to.create("/x", type::int8, {}), std::invalid_argument);
  BOOST_CHECK_THROW(to.create("/x", type::int8, {3}, {.deflate_level = 4}), std::invalid_argument);
  BOOST_CHECK_THROW(to.create("/x", type::int8, {3}, {.chunk_shape = {0}}), std::invalid_argument);
  to.create("/x", type::int8, {3});
  BOOST_CHECK_THROW(to.create("/x", type::int8, {3}), std::invalid_argument);
  BOOST_CHECK_THROW(to.create("/x/y", type::int8, {3}), io::error);
  BOOST_CHECK_THROW(to.write_rows("/y", 0, 3, bytes_of(three)), std::invalid_argument);
  BOOST_CHECK_THROW(to.write_rows("/x", 1, 3, bytes_of(three)), std::invalid_argument);
  BOOST_CHECK_THROW(to.write_rows("/x", 0, 2, bytes_of(three)), std::invalid_argument);
  BOOST_CHECK_THROW(io::writer("/nowhere/b.h5"), io::error);
  BOOST_CHECK_THROW(io::writer(path / "b.h5" / "c.h5"), io::error);
  const std::string long_name(300, 'x');
  for (const fs::path& file : {path / long_name, path / long_name / "b.h5"})
    BOOST_CHECK_EXCEPTION(io::writer{file}, io::error, [&](const io::error& e) {
      return e.context().system == ENAMETOOLONG && e.context().file == file.string();
    });
  BOOST_CHECK_THROW(io::writer("/dev/null"), io::error);
}

BOOST_FIXTURE_TEST_CASE(two_at_once_in_a_process_do_not_write_into_each_other, folder) {
  const fs::path file = path / "a.h5";
  const std::vector<std::uint16_t> values{1, 2, 3};
  std::ofstream(path / ("a.h5.partial-" + std::to_string(::getpid()))) << "of a killed process with this number";
  io::writer first(file);
  first.create("/x", type::uint16, {3});
  first.write_rows("/x", 0, 3, bytes_of(values));
  BOOST_CHECK_EXCEPTION(io::writer second(file), io::error, [](const io::error& e) {
    return std::string(e.what()).find("another writer") != std::string::npos;
  });
  first.commit_sealed();
  BOOST_TEST(h5py(file, "f['x'][:].tolist()") == "[1, 2, 3]");
  fs::remove(file.string() + ".txt");
  BOOST_TEST(files() == 1u);
  io::writer(file).commit();
}

BOOST_FIXTURE_TEST_CASE(a_file_that_somebody_put_in_the_place_of_the_unfinished_one_is_not_taken_for_it, folder) {
  const fs::path file = path / "a.h5", partial = path / ("a.h5.partial-" + std::to_string(::getpid()));
  {
    io::writer to(file);
    fs::remove(partial);
    std::ofstream(partial) << "of somebody else";
    BOOST_CHECK_EXCEPTION(to.commit(), io::error, [&](const io::error& e) {
      return std::string(e.what()).find("removed or replaced " + partial.string()) != std::string::npos;
    });
  }
  BOOST_TEST(!fs::exists(file));
  BOOST_TEST(fs::file_size(partial) == 16u);
}

BOOST_FIXTURE_TEST_CASE(a_link_that_leads_back_to_itself_is_an_error_and_stays, folder) {
  fs::create_symlink("loop.h5", path / "loop.h5");
  BOOST_CHECK_EXCEPTION(io::writer(path / "loop.h5"), io::error, [](const io::error& e) {
    return std::string(e.what()).find("symbolic links") != std::string::npos;
  });
  BOOST_TEST(fs::is_symlink(path / "loop.h5"));
}

BOOST_FIXTURE_TEST_CASE(a_link_stays_and_what_it_names_is_written, folder) {
  fs::create_directory(path / "far");
  fs::create_symlink("far/b.h5", path / "middle.h5");
  fs::create_symlink(path / "middle.h5", path / "link.h5");
  for (int value : {1, 2}) {
    io::writer to(path / "link.h5");
    to.create("/x", type::int32, {1});
    to.write_rows("/x", 0, 1, std::as_bytes(std::span(&value, 1)));
    to.commit();
    BOOST_TEST(h5py(path / "far" / "b.h5", "f['x'][0]") == std::to_string(value));
  }
  BOOST_TEST(fs::is_symlink(path / "link.h5"));
  BOOST_TEST(fs::is_symlink(path / "middle.h5"));
}

BOOST_AUTO_TEST_CASE(a_seal_tells_every_flipped_byte_without_libhdf5) {
  const folder here;
  const fs::path file = here.path / "sealed.h5", damaged = here.path / "damaged.h5";
  std::vector<float> values(100);
  std::iota(values.begin(), values.end(), 0.0f);
  const auto write = [&](const fs::path& to, void (io::writer::*commit)()) {
    io::writer out(to);
    out.create("/x", type::float32, {100});
    out.write_rows("/x", 0, 100, bytes_of(values));
    out.attribute("/", "note", "a text in the global heap, whose damage libhdf5 may not survive");
    (out.*commit)();
  };
  write(file, &io::writer::commit_sealed);
  BOOST_TEST(io::check_seal(file));
  BOOST_TEST(h5py(file, "f['x'][:].sum()") == "4950.0");
  std::ifstream in(file, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  constexpr std::size_t seal_bytes = 32, opening_bytes = 15;
  const auto put = [&](const std::string& bytes) { std::ofstream(damaged, std::ios::binary) << bytes; };
  for (std::size_t at = 0; at < whole.size(); at += at < whole.size() - 100 ? 7 : 1) {
    std::string other = whole;
    other[at] = static_cast<char>(other[at] ^ 1);
    put(other);
    // Where the words of the seal are damaged, it is none; so it is where the file is cut.
    const std::size_t seal = whole.size() - seal_bytes;
    if ((at >= seal && at < seal + opening_bytes) || at == whole.size() - 1)
      BOOST_TEST(!io::check_seal(damaged));
    else
      BOOST_CHECK_THROW(io::check_seal(damaged), io::error);
  }
  put(whole.substr(0, whole.size() / 2));
  BOOST_TEST(!io::check_seal(damaged));
  write(file, &io::writer::commit);
  BOOST_TEST(!io::check_seal(file));
  BOOST_TEST(!io::check_seal(here.path / "missing.h5"));
  BOOST_TEST(!io::check_seal(here.path));
}

BOOST_AUTO_TEST_SUITE_END()
