#include <penstock/io/error.hpp>
#include <penstock/io/output_file.hpp>
#include <penstock/io/writer.hpp>

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace io = penstock::io;
namespace fs = std::filesystem;

namespace {

struct folder {
  fs::path path = fs::temp_directory_path() / ("penstock-output-" + std::to_string(::getpid()));
  folder() { fs::create_directories(path); }
  ~folder() { fs::remove_all(path); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator{}));
  }
};

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

auto says(const fs::path& file, int system) {
  return [file, system](const io::error& e) {
    const std::string text = e.what();
    return e.context().system == system && e.context().file == file.string() && text.find('\n') == std::string::npos;
  };
}

}  // namespace

BOOST_AUTO_TEST_SUITE(output_file)

BOOST_FIXTURE_TEST_CASE(a_file_is_there_whole_after_commit_and_not_before, folder) {
  const fs::path file = path / "results.json";
  io::write_file(file, "older, and longer than what follows");
  io::output_file to(file);
  to.append("some ");
  to.append("more");
  BOOST_TEST(contents(file) == "older, and longer than what follows");
  BOOST_TEST(contents(to.name()) == "some more");
  to.commit();
  BOOST_TEST(contents(file) == "some more");
  BOOST_TEST(files() == 1u);
}

BOOST_FIXTURE_TEST_CASE(without_commit_nothing_is_left_and_the_older_file_stays, folder) {
  const fs::path file = path / "results.json";
  io::write_file(file, "older");
  { io::output_file(file).append("newer"); }
  BOOST_TEST(contents(file) == "older");
  BOOST_TEST(files() == 1u);
}

BOOST_FIXTURE_TEST_CASE(another_program_may_write_it_under_its_name_until_commit, folder) {
  const fs::path file = path / "loss.svg";
  io::output_file to(file);
  std::ofstream(to.name()) << "a picture";
  to.commit();
  BOOST_TEST(contents(file) == "a picture");
  BOOST_TEST(files() == 1u);
}

BOOST_FIXTURE_TEST_CASE(a_link_stays_and_what_it_names_is_written, folder) {
  const fs::path file = path / "results.json", link = path / "latest.json";
  fs::create_symlink("results.json", link);
  io::write_file(link, "text");
  BOOST_TEST(fs::is_symlink(link));
  BOOST_TEST(contents(file) == "text");
}

BOOST_FIXTURE_TEST_CASE(a_pipe_gets_the_bytes_as_they_come, folder) {
  const fs::path pipe = path / "pipe.json";
  BOOST_TEST_REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::string got;
  std::jthread reader([&] { got = contents(pipe); });
  const std::string text(300'000, 'p');  // more than a pipe holds
  io::write_file(pipe, text);
  reader.join();
  BOOST_TEST((got == text));
  BOOST_TEST(fs::is_fifo(pipe));
  BOOST_TEST(files() == 1u);
}

/// As a shell opens it for a program: "program --json /dev/stdout >> log.txt".
BOOST_FIXTURE_TEST_CASE(what_a_path_names_as_open_is_written_to_and_not_replaced, folder) {
  const fs::path log = path / "log.txt", link = path / "latest.json";
  const auto put = [](int fd, const std::string& text) {
    BOOST_TEST_REQUIRE(::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  };
  for (const int how : {O_APPEND, O_TRUNC}) {
    fs::remove_all(path);
    fs::create_directories(path);
    std::ofstream(log) << (how == O_APPEND ? "older\n" : "");
    const int fd = ::open(log.c_str(), O_RDWR | how);
    BOOST_TEST_REQUIRE(fd >= 0);
    const std::string number = std::to_string(fd);
    std::string expected = how == O_APPEND ? "older\n" : "";
    for (const std::string& name : {"/proc/self/fd/" + number, "/dev/fd/" + number,
                                    "/proc/" + std::to_string(::getpid()) + "/fd/" + number, link.string()}) {
      fs::remove(link);
      fs::create_symlink("/proc/self/fd/" + number, link);
      BOOST_TEST_CONTEXT(name) {
        put(fd, "before\n");
        io::output_file to(name);
        to.append("one ");
        to.append("text\n");
        to.commit();
        put(fd, "between\n");
        io::append_to_file(name, "line\n", io::durability::disk);
        put(fd, "after\n");
        expected += "before\none text\nbetween\nline\nafter\n";
        BOOST_TEST(contents(log) == expected);
        BOOST_CHECK_EXCEPTION(io::writer{name}, io::error, says(name, EEXIST));
        BOOST_TEST(contents(log) == expected);
        BOOST_TEST(files() == 2u);  // the link is one
      }
    }
    fs::remove(link);
    fs::remove(log);
    io::write_file("/proc/self/fd/" + number, "last\n");
    BOOST_TEST(files() == 0u);  // nor "log.txt (deleted)"
    std::string end(5, ' ');
    BOOST_TEST(::pread(fd, end.data(), end.size(), static_cast<off_t>(expected.size())) == 5);
    BOOST_TEST(end == "last\n");
    ::close(fd);
  }
}

BOOST_FIXTURE_TEST_CASE(what_cannot_be_written_is_named_with_the_systems_cause, folder) {
  const fs::path nowhere = path / "none" / "results.json";
  BOOST_CHECK_EXCEPTION(io::write_file(nowhere, "text"), io::error, says(nowhere, ENOENT));
  BOOST_CHECK_EXCEPTION(io::append_to_file(nowhere, "text", io::durability::disk), io::error, says(nowhere, ENOENT));
  const fs::path full = path / "full.json";
  fs::create_symlink("/dev/full", full);
  BOOST_CHECK_EXCEPTION(io::write_file(full, "text"), io::error, says(full, ENOSPC));
  BOOST_CHECK_EXCEPTION(io::append_to_file(full, "text", io::durability::process), io::error, says(full, ENOSPC));
  BOOST_CHECK_EXCEPTION(io::append_to_file(path, "text", io::durability::process), io::error, says(path, EISDIR));
  BOOST_TEST(files() == 1u);
}

/// What one of them has made, and not locked yet, looks to the others like what a killed one left.
BOOST_FIXTURE_TEST_CASE(processes_that_write_one_file_do_not_take_it_from_each_other, folder) {
  const fs::path file = path / "results.json";
  const auto write = [&] {
    for (int n = 0; n < 4000; ++n) {
      io::output_file to(file);
      to.append("text");
      if (n % 1000 == 0) to.commit();
    }
  };
  std::vector<pid_t> writers(4);
  for (pid_t& writer : writers)
    if ((writer = ::fork()) == 0) try {
        write();
        ::_exit(0);
      } catch (...) {
        ::_exit(1);
      }
  for (const pid_t writer : writers) {
    int status = -1;
    ::waitpid(writer, &status, 0);
    BOOST_TEST(status == 0);
  }
  BOOST_TEST(contents(file) == "text");
  BOOST_TEST(files() == 1u);
}

BOOST_FIXTURE_TEST_CASE(lines_are_added_to_what_is_there, folder) {
  const fs::path file = path / "log.jsonl";
  io::append_to_file(file, "one\n", io::durability::process);
  io::append_to_file(file, "two\n", io::durability::disk);
  BOOST_TEST(contents(file) == "one\ntwo\n");
}

BOOST_AUTO_TEST_SUITE_END()
