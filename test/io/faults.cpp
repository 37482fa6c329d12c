#include <penstock/fault.hpp>

#include "filters/decoder.hpp"
#include "made_files.hpp"

#include <penstock/config.hpp>
#include <penstock/io/error.hpp>
#include <penstock/io/file.hpp>
#include <penstock/io/row_reader.hpp>

#include <boost/test/unit_test.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <new>

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

/// The exit status of a child that makes a decoder's workspace where no memory is left for the libraries' state: 0
/// where it is told.
int status_without_memory() {
  const auto child = ::fork();
  if (child != 0) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
  }
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t taken = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const rlimit limit{taken, taken};
  ::setrlimit(RLIMIT_AS, &limit);
  constexpr std::size_t some = 8 << 10;  // libdeflate's state is larger, the workspace itself smaller
  void* volatile taken_away = nullptr;   // compilers leave out what nobody looks at
  do taken_away = std::malloc(some);
  while (taken_away != nullptr);
  try {
    const io::decode_workspace workspace({});
  } catch (const std::bad_alloc&) {
    ::_exit(0);
  }
  ::_exit(1);
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

#if PENSTOCK_HAS_LIBDEFLATE
BOOST_AUTO_TEST_CASE(a_decoder_library_that_gets_no_memory_is_an_error,
                     *boost::unit_test::precondition(memory_can_be_measured)) {
  BOOST_TEST(status_without_memory() == 0);
}
#endif

BOOST_AUTO_TEST_CASE(flipped_bits_are_found_where_the_format_has_a_checksum) {
  for (const std::string name : {"/gzip/rows", "/fletcher/rows", "/all/split"}) {
    const auto faults = std::make_shared<scripted>();
    faults->after = [](std::span<std::byte> bytes) { bytes[bytes.size() / 2] ^= std::byte{4}; };
    BOOST_CHECK_THROW(all_rows(open(name, faults)), io::error);
  }
}

BOOST_AUTO_TEST_SUITE_END()
