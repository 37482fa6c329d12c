#include <penstock/fault.hpp>

#include "made_files.hpp"

#include <penstock/io/error.hpp>
#include <penstock/io/file.hpp>
#include <penstock/io/row_reader.hpp>

#include <boost/test/unit_test.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>

namespace io = penstock::io;
using namespace penstock::io::test;

namespace {

struct scripted final : penstock::fault_injector {
  std::function<penstock::fault(penstock::fault_site, std::uint64_t, std::size_t)> script;
  std::function<void(std::span<std::byte>)> after;

  penstock::fault before(penstock::fault_site site, std::string_view, std::uint64_t offset,
                         std::size_t bytes) override {
    return script ? script(site, offset, bytes) : penstock::fault{};
  }
  void after_read(std::string_view, std::uint64_t, std::span<std::byte> bytes) override {
    if (after) after(bytes);
  }
};

io::row_reader open(const std::string& dataset, const std::shared_ptr<scripted>& faults) {
  return io::row_reader({{made_folder() / "layouts.h5", dataset}}, {.open_files = 4, .faults = faults});
}

std::vector<std::byte> all_rows(const io::row_reader& reader) {
  std::vector<std::byte> out(reader.rows() * reader.row_bytes());
  reader.read(0, reader.rows(), out);
  return out;
}

void limit_address_space(std::size_t more) {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit limit{};
  ::getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + more;
  ::setrlimit(RLIMIT_AS, &limit);
}

/// The exit status of a child that reads a dataset with so much memory: 0 where it has the rows, or is told.
int status_of_reading_with(std::size_t bytes, const made_dataset& d) {
  const auto expected = bytes_of_file(d.expected);
  const auto child = ::fork();
  if (child == 0) {
    for (const int signal : {SIGSEGV, SIGBUS, SIGABRT}) ::signal(signal, SIG_DFL);
    int status = 1;
    try {
      io::row_reader reader({{.file = made_folder() / d.file, .dataset = d.dataset}});
      std::vector<std::byte> out(expected.size());
      limit_address_space(0);
      for (const std::size_t some : {std::size_t{64} << 10, std::size_t{4} << 10})
        while (std::malloc(some) != nullptr) continue;  // what the heap has left
      limit_address_space(bytes);
      reader.reserve({});
      reader.read(0, reader.rows(), out);
      status = out == expected ? 0 : 2;
    } catch (const io::error& e) {
      status = e.context().system == ENOMEM && !e.context().damaged ? 0 : 3;
    } catch (...) {
    }
    ::_exit(status);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

const std::string datasets[] = {"/gzip/rows", "/plain/rows", "/plain/split", "/fletcher/rows"};

}  // namespace

BOOST_AUTO_TEST_SUITE(faults)

BOOST_AUTO_TEST_CASE(short_and_interrupted_reads_are_gone_on_with) {
  for (const auto& name : datasets) {
    const auto calm = all_rows(open(name, nullptr));
    const auto faults = std::make_shared<scripted>();
    std::atomic<int> calls{0};
    faults->script = [&](penstock::fault_site site, std::uint64_t, std::size_t) {
      penstock::fault f;
      if (site != penstock::fault_site::read_file) return f;
      f.error = calls++ % 3 == 0 ? EINTR : 0;
      f.at_most = 101;
      return f;
    };
    BOOST_TEST((all_rows(open(name, faults)) == calm), name);
    BOOST_TEST(calls > 0);
  }
}

BOOST_AUTO_TEST_CASE(chunks_that_follow_each_other_in_the_file_are_read_together) {
  // 11, 99, 99, 35 and 101 chunks, in one or two stretches of the file (h5py says), at most 64 of which are one read.
  for (const std::string name : {"/gzip/rows", "/gzip/split", "/all/split", "/gzip/columns", "/shuffle/one"}) {
    const auto faults = std::make_shared<scripted>();
    int reads = 0;
    faults->script = [&](penstock::fault_site site, std::uint64_t, std::size_t) {
      reads += site == penstock::fault_site::read_file;
      return penstock::fault{};
    };
    all_rows(open(name, faults));
    BOOST_TEST(reads >= 1, name);
    BOOST_TEST(reads <= 4, name << ": " << reads);
  }
}

BOOST_AUTO_TEST_CASE(an_error_of_the_system_names_file_dataset_and_rows_and_passes) {
  for (const auto& name : datasets) {
    const auto faults = std::make_shared<scripted>();
    std::atomic<bool> broken{true};
    faults->script = [&](penstock::fault_site site, std::uint64_t, std::size_t) {
      penstock::fault f;
      if (broken && site == penstock::fault_site::read_file) f.error = EIO;
      return f;
    };
    const auto reader = open(name, faults);
    BOOST_CHECK_EXCEPTION(all_rows(reader), io::error, [&](const io::error& e) {
      return e.context().system == EIO && e.context().dataset == name && e.context().rows.count > 0 &&
             e.context().file == (made_folder() / "layouts.h5").string();
    });
    broken = false;
    BOOST_TEST((all_rows(reader) == all_rows(open(name, nullptr))));
  }
}

BOOST_AUTO_TEST_CASE(a_file_that_ends_early_is_an_error) {
  const auto faults = std::make_shared<scripted>();
  faults->script = [](penstock::fault_site site, std::uint64_t, std::size_t) {
    penstock::fault f;
    if (site == penstock::fault_site::read_file) f.at_most = 0;
    return f;
  };
  BOOST_CHECK_EXCEPTION(all_rows(open("/gzip/rows", faults)), io::error, [](const io::error& e) {
    return std::string(e.what()).find("truncated") != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(a_file_that_does_not_open_is_an_error_with_the_systems_code) {
  const auto faults = std::make_shared<scripted>();
  faults->script = [](penstock::fault_site site, std::uint64_t, std::size_t) {
    penstock::fault f;
    if (site == penstock::fault_site::open_file) f.error = EMFILE;
    return f;
  };
  const auto refused = [](const io::error& e) { return e.context().system == EMFILE; };
  BOOST_CHECK_EXCEPTION(open("/gzip/rows", faults), io::error, refused);
  BOOST_CHECK_EXCEPTION(io::file(made_folder() / "layouts.h5", faults), io::error, refused);
}

BOOST_AUTO_TEST_CASE(however_little_memory_there_is_decoders_say_so,
                     *boost::unit_test::precondition(memory_can_be_measured)) {
  for (const std::string name : {"/gzip/rows", "/zstd/smooth"}) {
    const auto found =
        std::find_if(made_datasets().begin(), made_datasets().end(), [&](const auto& d) { return d.dataset == name; });
    if (found == made_datasets().end()) continue;  // this machine has no libzstd
    for (std::size_t bytes = 0; bytes < std::size_t{3} << 20; bytes += std::size_t{32} << 10)
      BOOST_TEST(status_of_reading_with(bytes, *found) == 0, name << " with " << bytes << " bytes");
  }
}

BOOST_AUTO_TEST_CASE(flipped_bits_are_found_where_the_format_has_a_checksum) {
  for (const std::string name : {"/gzip/rows", "/fletcher/rows", "/all/split"}) {
    const auto faults = std::make_shared<scripted>();
    faults->after = [](std::span<std::byte> bytes) { bytes[bytes.size() / 2] ^= std::byte{4}; };
    BOOST_CHECK_THROW(all_rows(open(name, faults)), io::error);
  }
}

BOOST_AUTO_TEST_SUITE_END()
