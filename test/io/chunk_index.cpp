// The chunk index is checked when a dataset is opened, and the dataset read through libhdf5 where the check fails. Here
// libhdf5 is made to say something else, or to read something else, to see that.

#include "chunk_index.hpp"

#include "made_files.hpp"
#include "read_driver.hpp"

#include <penstock/io/error.hpp>
#include <penstock/io/file.hpp>
#include <penstock/io/row_reader.hpp>

#include <boost/test/unit_test.hpp>

#include <dlfcn.h>

#include <algorithm>

namespace io = penstock::io;
using namespace penstock::io::test;

namespace {

/// What libhdf5 is made to do, while a test wants it.
struct {
  bool moves_chunks = false;        ///< H5Dget_chunk_info_by_coord says that chunks lie 8 bytes further on
  bool reads_chunks_twice = false;  ///< H5Dread_chunk reads each chunk two times
  bool changes_chunks = false;      ///< H5Dread_chunk turns a bit of each
  bool changes_masks = false;       ///< and of the mask of each, once the index is made
  bool index_is_made = false;       ///< it was compared with H5Dget_chunk_info_by_coord
  bool changes_values = false;      ///< H5Dread turns a bit of the first
  int values_read = 0;              ///< counts H5Dread
} odd_library;

template <class F>
F original(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

class oddly {
 public:
  explicit oddly(bool& what) : what_(what) { what_ = true; }
  ~oddly() { what_ = false; }
  oddly(const oddly&) = delete;
  oddly& operator=(const oddly&) = delete;

 private:
  bool& what_;
};

}  // namespace

// The program's own functions come before those of libhdf5, for all that is linked into it.
extern "C" herr_t H5Dget_chunk_info_by_coord(hid_t dataset, const hsize_t* offset, unsigned* mask, haddr_t* address,
                                             hsize_t* bytes) {
  odd_library.index_is_made = true;
  const auto ask = original<decltype(&H5Dget_chunk_info_by_coord)>("H5Dget_chunk_info_by_coord");
  const herr_t result = ask(dataset, offset, mask, address, bytes);
  if (odd_library.moves_chunks && address && *address != HADDR_UNDEF) *address += 8;
  return result;
}

extern "C" herr_t H5Dread(hid_t dataset, hid_t type, hid_t memory, hid_t part, hid_t transfer, void* out) {
  ++odd_library.values_read;
  const herr_t result = original<decltype(&H5Dread)>("H5Dread")(dataset, type, memory, part, transfer, out);
  if (odd_library.changes_values) *static_cast<std::byte*>(out) ^= std::byte{1};
  return result;
}

#if !H5_VERSION_GE(2, 0, 0)
extern "C" herr_t H5Dread_chunk(hid_t dataset, hid_t transfer, const hsize_t* offset, std::uint32_t* mask, void* out) {
  const auto read = original<decltype(&H5Dread_chunk)>("H5Dread_chunk");
  if (odd_library.reads_chunks_twice) read(dataset, transfer, offset, mask, out);
  const herr_t result = read(dataset, transfer, offset, mask, out);
  if (odd_library.changes_chunks) *static_cast<std::byte*>(out) ^= std::byte{1};
  if (odd_library.changes_masks && odd_library.index_is_made) *mask ^= 1;
  return result;
}
#endif

namespace {

struct opened_dataset {
  io::file_id file;
  io::dataset_id dataset;
  io::chunk_grid grid;
  std::uint64_t user_block;
};

opened_dataset open_dataset(const made_dataset& d) {
  const io::library_guard guard;
  const auto access = io::read_only_access();
  io::file_id file(H5Fopen((made_folder() / d.file).c_str(), H5F_ACC_RDONLY, access.native()));
  io::dataset_id dataset(H5Dopen2(file.native(), d.dataset.c_str(), H5P_DEFAULT));
  const auto info = io::row_reader({{made_folder() / d.file, d.dataset}}).segments()[0].info;
  const auto user_block = io::user_block_of(file.native());
  return {std::move(file), std::move(dataset), io::chunk_grid(info.shape, info.chunk_shape), user_block};
}

const made_dataset& made(const std::string& file, const std::string& dataset) {
  const auto found = std::find_if(made_datasets().begin(), made_datasets().end(),
                                  [&](const auto& d) { return d.file == file && d.dataset == dataset; });
  BOOST_TEST_REQUIRE((found != made_datasets().end()), file << ":" << dataset);
  return *found;
}

std::vector<std::byte> all_rows(const io::row_reader& reader) {
  std::vector<std::byte> out(reader.rows() * reader.row_bytes());
  reader.read(0, reader.rows(), out);
  return out;
}

/// Opened so, the dataset is read through libhdf5, for this reason, and right.
void is_locked(const made_dataset& d, const std::string& reason) {
  const io::row_reader reader({{made_folder() / d.file, d.dataset}});
  const auto& info = reader.segments()[0].info;
  BOOST_TEST((info.access == io::access::locked), d.name());
  BOOST_TEST(info.reason == reason);
  BOOST_TEST((all_rows(reader) == bytes_of_file(d.expected)), d.name());
}

const std::pair<const char*, const char*> indexes[] = {
    {"earliest.h5", "/fixed/gzip"}, {"latest.h5", "/single/plain"}, {"latest.h5", "/implicit"},
    {"latest.h5", "/fixed/plain"},  {"latest.h5", "/fixed/gzip"},   {"latest.h5", "/extensible/gzip"},
    {"latest.h5", "/btree2/gzip"},  {"user_block.h5", "/chunked"},  {"layouts.h5", "/early"},
    {"unfiltered_edges.h5", "/x"},  {"missing.h5", "/plain"}};

}  // namespace

BOOST_AUTO_TEST_SUITE(chunk_index)

BOOST_AUTO_TEST_CASE(an_entry_that_differs_from_what_libhdf5_says_is_noticed) {
  for (const auto& [file, name] : indexes) {
    const auto d = open_dataset(made(file, name));
    const auto entries = io::build_chunk_index(d.dataset.native(), d.grid);
    const auto agrees = [&](const std::vector<io::chunk_entry>& all) {
      return io::agrees_with_library(io::chunk_index(all), d.dataset.native(), d.grid, d.user_block);
    };
    BOOST_TEST_CONTEXT(file << ":" << name) {
      BOOST_TEST(agrees(entries));
      for (const auto n : {std::size_t{0}, entries.size() / 2, entries.size() - 1}) {
        auto moved = entries, longer = entries, masked = entries, turned = entries;
        moved[n].address += moved[n].address == io::chunk_entry::missing ? 0 : 1;
        BOOST_TEST((agrees(moved) == (moved[n].address == io::chunk_entry::missing)));
        longer[n].bytes += 1;
        masked[n].mask ^= 1;
        turned[n].address = turned[n].address == io::chunk_entry::missing ? 4096 : io::chunk_entry::missing;
        BOOST_TEST(!agrees(turned));
        if (entries[n].address == io::chunk_entry::missing) continue;
        BOOST_TEST(!agrees(longer));
        BOOST_TEST(!agrees(masked));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(addresses_count_from_the_files_first_byte) {
  const auto& made_one = made("user_block.h5", "/chunked");
  const auto d = open_dataset(made_one);
  BOOST_TEST(d.user_block == 2048u);
  auto entries = io::build_chunk_index(d.dataset.native(), d.grid);
  for (auto& entry : entries) entry.address -= d.user_block;
  // libhdf5 before 1.14.4 leaves the user block out: an index that does so, too, looks right to it, but not to H5Dread.
  BOOST_TEST(io::agrees_with_library(io::chunk_index(entries), d.dataset.native(), d.grid, d.user_block) ==
             io::addresses_lack_user_block());
  BOOST_TEST(
      (all_rows(io::row_reader({{made_folder() / "user_block.h5", "/chunked"}})) == bytes_of_file(made_one.expected)));
}

BOOST_AUTO_TEST_CASE(a_dataset_whose_chunks_lie_elsewhere_than_libhdf5_says_is_read_through_it) {
  const oddly now(odd_library.moves_chunks);
  for (const auto& [file, name] : indexes)
    is_locked(made(file, name), "its chunk index differs from what libhdf5 says");
}

#if !H5_VERSION_GE(2, 0, 0)
BOOST_AUTO_TEST_CASE(a_libhdf5_that_reads_chunks_in_another_way_is_noticed) {
  const auto d = open_dataset(made("latest.h5", "/extensible/gzip"));
  const oddly now(odd_library.reads_chunks_twice);
  BOOST_CHECK_THROW(io::probe_chunks(d.dataset.native(), d.grid), io::failure);
  // Where libhdf5 lists its chunks nothing is probed, but of datasets whose axes it lists in another order.
  is_locked(made("latest.h5", "/second_axis/gzip"),
            "its chunks are not where this version of libhdf5 was expected to look");
}
#endif

BOOST_AUTO_TEST_CASE(a_dataset_of_which_other_bytes_are_read_than_by_libhdf5_is_read_through_it) {
  for (const auto& [file, name] : indexes) {
    const auto& d = made(file, name);
    BOOST_TEST_CONTEXT(d.name()) {
      const auto reader = [&] {
        const oddly now(odd_library.changes_values);
        return io::row_reader({{made_folder() / d.file, d.dataset}});
      }();
      BOOST_TEST((reader.segments()[0].info.access == io::access::locked));
      BOOST_TEST(reader.segments()[0].info.reason == "a chunk decodes to other bytes than libhdf5 gives");
      BOOST_TEST((all_rows(reader) == bytes_of_file(d.expected)));
    }
  }
}

#if !H5_VERSION_GE(2, 0, 0)
BOOST_AUTO_TEST_CASE(a_damaged_chunk_that_lies_elsewhere_than_libhdf5_reads_it_is_read_through_it) {
  const auto access = [] {
    return io::row_reader({{made_folder() / "short.h5", "/deflate_bytes_0"}}).segments()[0].info.access;
  };
  BOOST_TEST((access() == io::access::direct));
  const oddly now(odd_library.changes_chunks);
  BOOST_TEST((access() == io::access::locked));
}

BOOST_AUTO_TEST_CASE(opening_compares_the_stored_bytes_of_large_chunks_that_take_long_to_decode_and_decodes_none) {
  const auto file = made_folder() / "large_chunks.h5";
  // (name, what opening asks H5Dread for): chunks of 17 MiB, deflated, so after filters of HDF5's and after one of
  // another's, in lzf, and as they are; deflated ones of 16 MiB.
  const std::pair<const char*, int> cases[] = {{"/deflate", 0}, {"/shuffled", 0}, {"/bitshuffled", 1},
                                               {"/lzf", 1},     {"/plain", 1},    {"/smaller", 1}};
  const auto counts = [](const io::row_reader& reader) {
    std::vector<std::uint32_t> values(reader.rows() << 18);
    reader.read(0, reader.rows(), std::as_writable_bytes(std::span(values)));
    std::uint32_t next = 0;
    return std::ranges::all_of(values, [&](std::uint32_t value) { return value == next++; });
  };
  for (const auto& [name, reads] : cases) {
    BOOST_TEST_CONTEXT(name) {
      odd_library.values_read = 0;
      const io::row_reader reader({{file, name}});
      BOOST_TEST(odd_library.values_read == reads);
      BOOST_TEST((reader.segments()[0].info.access == io::access::direct), reader.segments()[0].info.reason);
      BOOST_TEST(counts(reader));
    }
  }
  for (bool* change : {&odd_library.changes_chunks, &odd_library.changes_masks}) {
    odd_library.index_is_made = false;
    const oddly now(*change);
    const io::row_reader reader({{file, "/deflate"}});
    BOOST_TEST((reader.segments()[0].info.access == io::access::locked));
    BOOST_TEST(reader.segments()[0].info.reason == "a chunk decodes to other bytes than libhdf5 gives");
    BOOST_TEST(counts(reader));
  }
}
#endif

BOOST_AUTO_TEST_CASE(streams_that_end_short_are_errors_that_name_their_rows_wherever_they_lie) {
  const auto file = made_folder() / "short.h5";
  int visited = 0;
  for (const auto& info : io::file(file).datasets()) {
    const io::row_reader reader({{file, info.path}});
    const auto damaged = info.path.ends_with("_0") ? std::uint64_t{0} : std::uint64_t{20};
    BOOST_TEST_CONTEXT(info.path) {
      BOOST_TEST((reader.segments()[0].info.access == io::access::direct), reader.segments()[0].info.reason);
      std::vector<std::uint32_t> row(16);
      for (std::uint64_t n = 0; n < reader.rows(); ++n) {
        const auto read = [&] { reader.read(n, 1, std::as_writable_bytes(std::span(row))); };
        if (n / 4 == damaged / 4) {
          BOOST_CHECK_EXCEPTION(read(), io::error, [&](const io::error& e) {
            return e.context().dataset == info.path && e.context().rows.first <= n &&
                   n < e.context().rows.first + e.context().rows.count && e.context().rows.count <= 4;
          });
        } else {
          read();
          BOOST_TEST(std::count(row.begin(), row.end(), n) == 16);
        }
      }
    }
    ++visited;
  }
  BOOST_TEST(visited >= 4 * 4 + 1);  // deflate, lzf, szip and bitshuffle need no library of their own
}

BOOST_AUTO_TEST_CASE(the_index_is_in_the_ledger) {
  // 16 bytes for each chunk there could be, stored or not.
  const std::pair<const char*, std::size_t> cases[] = {{"/plain", 8}, {"/gzip", 8}, {"/split", 24}, {"/never", 3}};
  for (const auto& [name, chunks] : cases) {
    const io::row_reader reader({{made_folder() / "missing.h5", name}});
    const auto items = reader.memory({});
    const auto index = std::find_if(items.begin(), items.end(), [](const auto& i) { return i.name == "chunk index"; });
    BOOST_TEST_REQUIRE((index != items.end()));
    BOOST_TEST(index->bytes == 16 * chunks, name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
