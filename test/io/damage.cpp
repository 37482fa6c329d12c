// Which failures are damage of what is stored, and which rows they name.

#include "../support/damaged_chunks.hpp"
#include "made_files.hpp"

#include <penstock/config.hpp>
#include <penstock/fault.hpp>
#include <penstock/io/error.hpp>
#include <penstock/io/row_reader.hpp>

#include <boost/test/unit_test.hpp>

#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <utility>

namespace io = penstock::io;
namespace fs = std::filesystem;
using namespace penstock::io::test;

namespace {

/// One place of a file that cannot be read, the first `times` that somebody tries.
struct bad_place final : penstock::fault_injector {
  bad_place(std::uint64_t place, int code, int most = -1) : at(place), error(code), times(most) {}

  penstock::fault before(penstock::fault_site site, std::string_view, std::uint64_t offset,
                         std::size_t bytes) override {
    penstock::fault f;
    if (site != penstock::fault_site::read_file || at < offset || at - offset >= bytes || times == 0) return f;
    --times;
    f.error = error;
    if (error == 0) f.at_most = at - offset;  // the file ends there
    return f;
  }

  std::uint64_t at;
  int error, times;
};

/// The n-th use of a site since it was armed fails.
struct nth_use final : penstock::fault_injector {
  nth_use(penstock::fault_site where, int code) : site(where), error(code) {}

  penstock::fault before(penstock::fault_site where, std::string_view what, std::uint64_t, std::size_t bytes) override {
    if (where != site) return {};
    if (where == penstock::fault_site::allocate_host && what == looked_at) asked.push_back(bytes);
    if (left < 0 || left-- != 0) return {};
    happened = true;
    return {.error = error};
  }
  void arm(int n) { left = n, happened = false; }

  static constexpr std::string_view looked_at = "chunks that are looked at";
  penstock::fault_site site;
  int error, left = -1;
  bool happened = false;
  std::vector<std::size_t> asked;  // for looking at chunks
};

std::size_t bytes_of(std::string_view name, const io::row_reader& reader, std::size_t concurrency) {
  std::size_t bytes = 0;
  for (const auto& item : reader.memory({.concurrency = concurrency})) bytes += item.name == name ? item.bytes : 0;
  return bytes;
}

std::size_t bytes_to_look_at_chunks(const io::row_reader& reader, std::size_t concurrency) {
  return bytes_of(nth_use::looked_at, reader, concurrency);
}

const fs::path& faulty_folder() {
  static const fs::path folder = [] {
    const auto path = made_folder() / "faulty";
    fs::create_directories(path);
    const std::string command =
        "/usr/bin/python3 '" PENSTOCK_TEST_IO_SOURCE "/faulty_files.py' '" + path.string() + "'";
    BOOST_TEST_REQUIRE(std::system(command.c_str()) == 0);
    return path;
  }();
  return folder;
}

/// Where a chunk lies, as h5py says.
std::uint64_t place_of(const std::string& dataset, std::uint64_t chunk) {
  std::ifstream list(faulty_folder() / "places.txt");
  std::string name;
  for (std::uint64_t n = 0, at = 0; list >> name >> n >> at;)
    if (name == dataset && n == chunk) return at;
  throw std::out_of_range(dataset);
}

/// What reading the rows throws.
io::error_context refused(const std::string& dataset, std::uint64_t first, std::uint64_t count,
                          penstock::fault_seam faults = {}) {
  const io::row_reader reader({{.file = faulty_folder() / "faulty.h5", .dataset = dataset}},
                              {.faults = std::move(faults)});
  std::vector<std::byte> out(count * reader.row_bytes());
  try {
    reader.read(first, count, out);
  } catch (const io::error& e) {
    return e.context();
  }
  throw std::logic_error(dataset + " is read without an error");
}

using rows = std::pair<std::uint64_t, std::uint64_t>;  // first and count

rows refused_rows(const std::string& dataset, std::uint64_t first, std::uint64_t count, std::uint64_t place,
                  int times = -1) {
  const auto found = refused(dataset, first, count, std::make_shared<bad_place>(place, EIO, times)).rows;
  return {found.first, found.count};
}

/// Lets each use of a site fail while the dataset is read: an error that is no damage, and then the rows. How many uses
/// there are, and how many of the errors name the rows of one chunk.
std::pair<int, int> uses_that_fail(const std::string& dataset, penstock::fault_site site, int code) {
  std::vector<std::uint32_t> expected(64 * 8), found(expected.size());
  for (std::size_t n = 0; n < expected.size(); ++n) expected[n] = static_cast<std::uint32_t>(n);
  const auto bytes = std::as_writable_bytes(std::span(found));
  int naming_a_chunk = 0;
  for (int uses = 0;; ++uses) BOOST_TEST_CONTEXT(dataset << ", errno " << code << ", use " << uses) {
      const auto faults = std::make_shared<nth_use>(site, code);
      const io::row_reader reader({{.file = faulty_folder() / "faulty.h5", .dataset = dataset}}, {.faults = faults});
      BOOST_TEST_REQUIRE((reader.segments()[0].info.access == io::access::locked));
      faults->arm(uses);
      std::optional<io::error_context> told;
      try {
        reader.read(0, 64, bytes);
      } catch (const io::error& e) {
        told = e.context();
      }
      faults->left = -1;
      BOOST_TEST(told.has_value() == faults->happened);
      if (told) {
        BOOST_TEST(told->system == code);
        BOOST_TEST(!told->damaged);
        naming_a_chunk += told->rows.count == 8;
      }
      reader.read(0, 64, bytes);
      BOOST_TEST(found == expected, boost::test_tools::per_element());
      if (!faults->happened) return {uses, naming_a_chunk};
    }
}

// Large pieces that earlier cases gave back must not lie in the heap, where a child would find them: set by hand, the
// threshold above which they are maps of their own does not grow.
[[maybe_unused]] const int threshold = ::mallopt(M_MMAP_THRESHOLD, 128 << 10);

/// The exit status of `f` in a child that may take 16 MiB more of address space than it has.
template <class F>
int status_with_little_memory(F&& f) {
  const auto child = ::fork();
  if (child == 0) {
    for (const int signal : {SIGSEGV, SIGBUS, SIGABRT}) ::signal(signal, SIG_DFL);
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + (std::size_t{16} << 20);
    const rlimit memory{most, most};
    ::setrlimit(RLIMIT_AS, &memory);
    int status = 1;
    try {
      status = f() ? 0 : 2;
    } catch (...) {
    }
    ::_exit(status);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(damage)

BOOST_AUTO_TEST_CASE(a_chunk_that_cannot_be_read_names_its_rows_whatever_is_read_with_it) {
  for (const std::string name : {"/apart", "/gzip"})
    for (std::uint64_t chunk = 0; chunk < 8; ++chunk)
      BOOST_TEST((refused_rows(name, 0, 64, place_of(name, chunk) + 40) == rows{8 * chunk, 8}),
                 name << ", chunk " << chunk);
}

BOOST_AUTO_TEST_CASE(of_a_chunk_without_filters_only_rows_that_were_wanted_are_named) {
  BOOST_TEST((refused_rows("/apart", 3, 10, place_of("/apart", 0) + 130) == rows{3, 5}));
  BOOST_TEST((refused_rows("/apart", 3, 10, place_of("/apart", 1)) == rows{8, 5}));
}

BOOST_AUTO_TEST_CASE(where_one_read_takes_many_rows_all_of_them_are_named) {
  BOOST_TEST((refused_rows("/together", 17, 30, place_of("/together", 4)) == rows{17, 30}));
  // What goes well when each chunk is tried by itself is an error all the same, of all that were read at once.
  BOOST_TEST((refused_rows("/gzip", 8, 40, place_of("/gzip", 3), 1) == rows{8, 40}));
}

BOOST_AUTO_TEST_CASE(rows_of_a_virtual_dataset_are_its_own_and_not_its_sources) {
  BOOST_TEST((refused_rows("/swapped", 0, 16, place_of("/gzip", 5)) == rows{0, 8}));
  BOOST_TEST((refused_rows("/swapped", 0, 16, place_of("/gzip", 1)) == rows{8, 8}));
  // Every second row; rows 12 to 15 of the source are one chunk's, and rows 0, 2, 4 and 6 here.
  BOOST_TEST((refused_rows("/in_turns", 0, 16, place_of("/gzip", 1)) == rows{0, 7}));
  BOOST_TEST((refused_rows("/in_turns", 0, 16, place_of("/gzip", 2)) == rows{8, 7}));
  BOOST_TEST((refused_rows("/in_turns", 4, 9, place_of("/gzip", 4)) == rows{5, 7}));
}

/// Who leaves rows out asks for none of them again.
BOOST_AUTO_TEST_CASE(rows_that_are_lost_with_a_chunk_are_told_asked_for_or_not) {
  using lost = std::array<std::uint64_t, 3>;  // first, count and step
  const auto lost_with = [](const std::string& name, const std::string& source, std::uint64_t chunk,
                            std::uint64_t first, std::uint64_t count, int code = EIO) {
    const auto of = refused(name, first, count, std::make_shared<bad_place>(place_of(source, chunk), code)).lost;
    return lost{of.first, of.count, of.step};
  };
  const lost none{0, 0, 1};
  BOOST_TEST((lost_with("/gzip", "/gzip", 3, 26, 2) == lost{24, 8, 1}));
  BOOST_TEST((lost_with("/locked", "/locked", 3, 26, 2) == lost{24, 8, 1}));
  BOOST_TEST((lost_with("/locked", "/locked", 3, 0, 64) == lost{24, 8, 1}));
  BOOST_TEST((lost_with("/gzip", "/gzip", 3, 0, 64, ENOMEM) == none));
  BOOST_TEST((lost_with("/apart", "/apart", 3, 24, 2) == none));
  BOOST_TEST((lost_with("/swapped", "/gzip", 5, 2, 3) == lost{0, 8, 1}));
  // Rows 12 to 15 of the source, which are rows 0, 2, 4 and 6.
  BOOST_TEST((lost_with("/in_turns", "/gzip", 1, 0, 3) == lost{0, 4, 2}));
  BOOST_TEST((lost_with("/in_turns", "/gzip", 4, 0, 16) == lost{1, 8, 2}));
  // Rows 8, 10 and 12 of /in_turns, and not 14.
  BOOST_TEST((lost_with("/of_turns", "/gzip", 2, 0, 10) == lost{4, 3, 2}));
  // Rows 18 and 21 of the source, the fourth and fifth from 9 on.
  BOOST_TEST((lost_with("/every_third", "/gzip", 2, 5, 1) == lost{5, 2, 1}));
  BOOST_TEST((lost_with("/stacked", "/gzip", 5, 0, 8) == lost{5, 1, 1}));
  // Where libhdf5 reads: what was asked for, if each row shows what the others do, and that with filters.
  BOOST_TEST((lost_with("/locked_behind", "/gzip", 3, 26, 4) == lost{26, 4, 1}));
  BOOST_TEST((lost_with("/locked_behind", "/gzip", 3, 22, 4) == none));
  BOOST_TEST((lost_with("/locked_apart", "/gzip", 3, 1, 3) == lost{1, 3, 1}));
  BOOST_TEST((lost_with("/locked_apart", "/gzip", 3, 0, 12) == none));
  BOOST_TEST((lost_with("/locked_beside", "/gzip", 3, 0, 8) == none));
}

BOOST_AUTO_TEST_CASE(what_a_disk_has_lost_is_damage_and_what_may_come_back_is_not) {
  const std::map<int, bool> codes{{EIO, true}, {0, true}, {ENOMEM, false}, {ESTALE, false}, {ETIMEDOUT, false}};
  for (const std::string name : {"/apart", "/together", "/gzip", "/locked"})
    for (const auto& [code, is_damage] : codes) {
      const auto context = refused(name, 0, 64, std::make_shared<bad_place>(place_of(name, 2) + 10, code));
      BOOST_TEST(context.system == code, name);
      BOOST_TEST(context.damaged == is_damage, name << ", " << code);
    }
}

/// A policy that leaves damaged rows out would mask them. Of these datasets, or of the source of one, each chunk is
/// looked at before libhdf5 reads it: its place in the index, then what is stored.
BOOST_AUTO_TEST_CASE(want_of_memory_or_descriptors_is_no_damage_wherever_a_chunk_is_looked_at) {
  for (const std::string name : {"/locked_gzip", "/locked_behind", "/locked_outside"})
    for (const int code : {ENOMEM, EMFILE, ENFILE}) {
      const auto [reads, naming_a_chunk] = uses_that_fail(name, penstock::fault_site::read_file, code);
#if PENSTOCK_HAS_LIBDEFLATE
      // A node of the index, and what is stored of eight chunks. Rows of a source are not those of the dataset.
      if (name == "/locked_gzip") BOOST_TEST(naming_a_chunk >= 9);
      BOOST_TEST(reads >= naming_a_chunk + 9);
#endif
      const auto opened = uses_that_fail(name, penstock::fault_site::open_file, code).first;
      BOOST_TEST(opened >= (name == "/locked_outside" ? 3 : 2), name);  // looked at, opened; its source
    }
#if PENSTOCK_HAS_LIBDEFLATE
  // For a read, and for chunks that are looked at; for the mappings.
  for (const std::string name : {"/locked_gzip", "/locked_behind", "/locked_outside"})
    BOOST_TEST(
        uses_that_fail(name, penstock::fault_site::allocate_host, ENOMEM).first >= (name == "/locked_gzip" ? 2 : 3),
        name);
#endif
}

#if PENSTOCK_HAS_LIBDEFLATE
/// The fourth chunk of /longer goes through libhdf5, alone: memory is taken for it while it is looked at.
BOOST_AUTO_TEST_CASE(memory_that_is_refused_where_a_chunk_is_looked_at_is_no_damage) {
  const auto faults = std::make_shared<nth_use>(penstock::fault_site::allocate_host, ENOMEM);
  const io::row_reader reader({{.file = faulty_folder() / "faulty.h5", .dataset = "/longer"}}, {.faults = faults});
  BOOST_TEST_REQUIRE((reader.segments()[0].info.access == io::access::direct));
  std::vector<std::byte> out(64 * reader.row_bytes());
  reader.read(0, 24, std::span(out).first(24 * reader.row_bytes()));
  BOOST_TEST_REQUIRE(faults->asked.empty());
  faults->arm(0);  // the next is for opening the dataset in libhdf5, the one after for this
  BOOST_CHECK_EXCEPTION(reader.read(0, 64, out), io::error, [](const io::error& e) { return !e.context().damaged; });
  BOOST_TEST(faults->asked.empty());
  faults->arm(1);
  BOOST_CHECK_EXCEPTION(reader.read(0, 64, out), io::error, [](const io::error& e) {
    return e.context().system == ENOMEM && !e.context().damaged &&
           std::string(e.what()).find("there is not enough host memory") != std::string::npos;
  });
  BOOST_TEST(faults->happened);
  BOOST_TEST(faults->asked.size() == 1u);
  reader.read(0, 64, out);
  std::uint32_t last = 0;
  std::memcpy(&last, out.data() + out.size() - 4, 4);
  BOOST_TEST(last == 64u * 8 - 1);
}

/// A chunk has 256 bytes: in each half there may be those, half as many, and 1 MiB.
BOOST_AUTO_TEST_CASE(memory_in_which_chunks_are_looked_at_is_in_the_ledger_once_and_no_read_takes_any) {
  constexpr std::size_t half = 256 + 128 + (1 << 20);
  const auto file = faulty_folder() / "faulty.h5";
  for (const std::string name : {"/locked_gzip", "/locked_behind"}) {
    const auto faults = std::make_shared<nth_use>(penstock::fault_site::allocate_host, 0);
    io::row_reader reader({{.file = file, .dataset = name}}, {.faults = faults});
    for (const std::size_t concurrency : {1, 8})
      BOOST_TEST(bytes_to_look_at_chunks(reader, concurrency) == 2 * half, name);
    faults->asked.clear();
    reader.reserve({.concurrency = 8});
    BOOST_TEST(faults->asked == std::vector<std::size_t>{2 * half}, boost::test_tools::per_element());
    std::vector<std::byte> out(64 * reader.row_bytes());
    faults->asked.clear();
    reader.read(0, 64, out);
    BOOST_TEST(faults->asked.empty(), name);
    // Starts and counts of a box, at the least, along 32 axes, for the mapping that is held while it is open.
    const auto mappings = bytes_of("mappings of virtual datasets", reader, 8);
    BOOST_TEST(mappings >= (name == "/locked_behind" ? 32 * 2 * 8u : 0u));
    BOOST_TEST(mappings <= (name == "/locked_behind" ? 2000u : 0u));
  }
  for (const std::string others : {"/locked", "/gzip"})
    BOOST_TEST(bytes_to_look_at_chunks(io::row_reader({{.file = file, .dataset = others}}), 8) == 0u, others);
}

/// What a header claims is not asked for: deflate makes at most 1032 bytes of one.
BOOST_AUTO_TEST_CASE(memory_in_which_chunks_are_looked_at_is_no_more_than_the_file_can_fill) {
  const auto file = made_folder() / "claims_a_chunk.h5";
  penstock::test::run_python("import h5py\nwith h5py.File('" + file.string() +
                             "', 'w') as f:\n  f.create_dataset('x', (1 << 29,), '<u4', chunks=(1 << 29,), "
                             "scaleoffset=0, compression='gzip')\n");
  const io::row_reader reader({{.file = file, .dataset = "/x"}});
  BOOST_TEST_REQUIRE((reader.segments()[0].info.access == io::access::locked));
  BOOST_TEST(bytes_to_look_at_chunks(reader, 1) == 2 * 1032 * fs::file_size(file));
}
#endif

BOOST_AUTO_TEST_CASE(a_filter_without_its_plugin_is_no_damage) {
  for (const std::string name : {"/no_plugin", "/no_plugin_behind"}) {
    const auto context = refused(name, 0, 8);
    BOOST_TEST(context.system == ENOTSUP, name);
    BOOST_TEST(!context.damaged, name);
  }
}

#if PENSTOCK_HAS_LZ4
BOOST_AUTO_TEST_CASE(a_chunk_that_no_decoder_understands_is_damage_without_a_plugin_too) {
  const auto context = refused("/lz4", 0, 64);
  BOOST_TEST(context.damaged);
  BOOST_TEST((rows{context.rows.first, context.rows.count} == rows{24, 8}));
}
#endif

BOOST_AUTO_TEST_CASE(memory_that_libhdf5_does_not_get_is_no_damage,
                     *boost::unit_test::precondition(memory_can_be_measured)) {
  faulty_folder();
  BOOST_TEST(status_with_little_memory([] {
               const auto context = refused("/large_chunk", 0, 1);
               return context.system == ENOMEM && !context.damaged;
             }) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
