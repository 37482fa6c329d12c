// Chunks of each compression that hold something else than its encoder wrote: an error, what libhdf5 reads in a second
// try, or other values where the format has no checksum; never a crash or a hang, and never kept. And decoders that
// fail, or give other bytes than the chunk holds.

#include "../support/damaged_chunks.hpp"
#include "fault_table.hpp"
#include "nth_use.hpp"

#include <penstock/io/row_reader.hpp>

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>

namespace io = penstock::io;
namespace fs = std::filesystem;
using namespace penstock::test;

namespace {

constexpr std::uint64_t rows = 1024, columns = 16;

/// A dataset for each compression that this machine can write, by h5py and the filters' plugins; /plain is what all
/// hold.
struct compressed_file {
  fs::path path = fs::temp_directory_path() / ("penstock-compressed-" + std::to_string(::getpid()) + ".h5");
  std::set<std::string> names;

  compressed_file() {
    const std::string list = path.string() + ".txt";
    run_python(
        "import h5py, numpy\nv = (numpy.arange(1024 * 16) * 7 % 4093 // 5).astype('f4').reshape(1024, 16)\n"
        "kinds = dict(gzip=[1], lzf=[32000], szip=[4], blosc=[32001], lz4=[32004], bitshuffle_lz4=[32008], "
        "zstd=[32015], shuffle_gzip_fletcher32=[2, 1, 3], fletcher32_gzip=[3, 1])\n"
        "opts = {1: (4,), 4: (4, 16), 32001: (0, 0, 0, 0, 5, 1, 1), 32008: (0, 2)}\n"
        "with h5py.File('" +
        path.string() + "', 'w') as f, open('" + list +
        "', 'w') as names:\n"
        "  f['plain'] = v\n"
        "  for name, filters in kinds.items():\n"
        "    if not all(h5py.h5z.filter_avail(n) for n in filters): continue\n"
        "    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)\n"
        "    how.set_chunk((32, 16))\n"
        "    for n in filters: how.set_szip(4, 16) if n == 4 else how.set_filter(n, 0, opts.get(n, ()))\n"
        "    space = h5py.h5s.create_simple(v.shape)\n"
        "    d = h5py.h5d.create(f.id, name.encode(), h5py.h5t.IEEE_F32LE, space, how)\n"
        "    d.write(h5py.h5s.ALL, h5py.h5s.ALL, v)\n"
        "    print(name, file=names)\n");
    std::ifstream made(list);
    for (std::string name; std::getline(made, name);) names.insert(name);
    fs::remove(list);
  }
  ~compressed_file() { fs::remove(path); }
  compressed_file(const compressed_file&) = delete;
  compressed_file& operator=(const compressed_file&) = delete;
};

std::vector<float> values_of(const io::row_reader& reader) {
  constexpr std::uint64_t piece = 48;  // a chunk and a half
  std::vector<float> all(rows * columns);
  for (std::uint64_t first = 0; first < rows; first += piece) {
    const std::uint64_t count = std::min(piece, rows - first);
    reader.read(first, count, std::as_writable_bytes(std::span(all)).subspan(first * columns * 4, count * columns * 4));
  }
  return all;
}

/// A bit of a zero may make a number that processors take for zero, as they are set.
bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(std::as_bytes(std::span(a)), std::as_bytes(std::span(b)));
}

void flip_a_bit(std::span<std::byte> bytes) { bytes[bytes.size() / 2] ^= std::byte{4}; }
void flip_the_first_byte(std::span<std::byte> bytes) { bytes[0] ^= std::byte{0xff}; }
void fill_with_garbage(std::span<std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + 11);
}
void cut_in_half(std::span<std::byte> bytes) {
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2), bytes.end(), std::byte{0});
}
void ask_for_all_there_is(std::span<std::byte> bytes) { std::fill(bytes.begin(), bytes.end(), std::byte{0xff}); }

}  // namespace

BOOST_AUTO_TEST_SUITE(decoder_faults, *boost::unit_test::timeout(600))

BOOST_AUTO_TEST_CASE(whatever_a_chunk_holds_its_decoder_ends_and_keeps_nothing) {
  const compressed_file file;
  const auto right = values_of(io::row_reader({{file.path, "/plain"}}));
  BOOST_TEST_REQUIRE(file.names.contains("gzip"));
  for (const char* name :
       {"gzip", "lzf", "szip", "blosc", "lz4", "bitshuffle_lz4", "zstd", "shuffle_gzip_fletcher32"}) {
    if (!file.names.contains(name)) {
      std::cout << "skipped: " << name << ": its plugin is not installed\n";
      continue;
    }
    const bool has_checksum = std::string_view(name).find("gzip") != std::string_view::npos;
    for (const auto& [fault, change] : {std::pair<const char*, nth_use::damage>{"a flipped bit", flip_a_bit},
                                        {"its first byte", flip_the_first_byte},
                                        {"garbage", fill_with_garbage},
                                        {"its second half", cut_in_half},
                                        {"all bits set", ask_for_all_there_is}}) {
      const auto faults = std::make_shared<nth_use>(change);
      const auto run = [&](std::int64_t n) {
        const io::row_reader reader({{file.path, std::string("/") + name}}, {.faults = faults});
        BOOST_TEST((reader.segments()[0].info.access == io::access::direct), reader.segments()[0].info.reason);
        faults->arm(n);
        const outcome how =
            outcome_of([&] { return values_of(reader) == right ? "right rows" : "wrong rows, unnoticed"; });
        faults->disarm();
        BOOST_TEST((values_of(reader) == right));  // the same reader, healthy
        return how;
      };
      try_positions({.stage = std::string("decode: ") + name,
                     .fault = fault,
                     .run = run,
                     .happened = [&] { return faults->happened(); },
                     .since = [&] { return faults->since(); },
                     .expected =
                         [&](const outcome& how) {
                           if (how.name == "io::error")
                             return how.says("penstock-compressed") && how.says(name) && how.says("rows ");
                           return how.name == "right rows" || !has_checksum;
                         },
                     .most = 12});
    }
  }
}

// What is stored is right here, and the decoder is wrong.
BOOST_AUTO_TEST_CASE(
    a_decoder_that_reports_damage_or_too_little_is_an_error_and_wrong_bytes_are_what_a_checksum_finds) {
  using penstock::fault;
  using penstock::fault_site;
  const compressed_file file;
  const auto right = values_of(io::row_reader({{file.path, "/plain"}}));
  enum class found { always, never };
  const auto attempt = [&](const char* dataset, const char* decoder, const char* what, const auto& faults, found is) {
    const auto run = [&](std::int64_t n) {
      const io::row_reader reader({{file.path, std::string("/") + dataset}}, {.faults = faults});
      BOOST_TEST((reader.segments()[0].info.access == io::access::direct), reader.segments()[0].info.reason);
      faults->arm(n);
      const outcome how =
          outcome_of([&] { return same_bits(values_of(reader), right) ? "right rows" : "wrong rows, unnoticed"; });
      faults->disarm();
      BOOST_TEST(same_bits(values_of(reader), right));  // the same reader, healthy
      return how;
    };
    try_positions({.stage = fmt::format("the decoder of {}, of {}", decoder, dataset),
                   .fault = what,
                   .run = run,
                   .happened = [&] { return faults->happened(); },
                   .since = [&] { return faults->since(); },
                   .expected =
                       [&](const outcome& how) {
                         if (is == found::never) return how.name == "wrong rows, unnoticed";
                         return how.name == "io::error" && how.says("penstock-compressed") && how.says(dataset) &&
                                how.says("rows ");
                       },
                   .most = 40});
  };
  const auto fails = [](const char* decoder) {
    return std::make_shared<nth_use>(fault_site::decode, fault{.error = 1}, std::vector<std::string>{decoder});
  };
  const auto gives = [](const char* decoder, std::size_t bytes) {
    return std::make_shared<nth_use>(fault_site::decode, fault{.at_most = bytes}, std::vector<std::string>{decoder});
  };
  const auto wrong = [](const char* decoder, nth_use::damage change) {
    return std::make_shared<nth_use>(std::move(change), fault_site::decode, std::vector<std::string>{decoder});
  };
  for (const auto& [dataset, decoders] : {std::pair<const char*, std::vector<const char*>>{"gzip", {"deflate"}},
                                          {"shuffle_gzip_fletcher32", {"fletcher32", "deflate", "shuffle"}},
                                          {"fletcher32_gzip", {"deflate", "fletcher32"}}})
    for (const char* decoder : decoders) {
      attempt(dataset, decoder, "reports damage", fails(decoder), found::always);
      for (const std::size_t bytes : {std::size_t{0}, std::size_t{7}, std::size_t{2044}})
        if (std::string_view(decoder) != "fletcher32" || bytes < 2044)
          attempt(dataset, decoder, "puts out too little", gives(decoder, bytes), found::always);
    }
  for (const auto& [what, change] : {std::pair<const char*, nth_use::damage>{"puts out a flipped bit", flip_a_bit},
                                     {"puts out garbage", fill_with_garbage}}) {
    attempt("fletcher32_gzip", "deflate", what, wrong("deflate", change), found::always);
    attempt("gzip", "deflate", what, wrong("deflate", change), found::never);
    // The checksum, as h5py writes it, is of what is stored: of the bytes before they are inflated.
    attempt("shuffle_gzip_fletcher32", "deflate", what, wrong("deflate", change), found::never);
    attempt("shuffle_gzip_fletcher32", "shuffle", what, wrong("shuffle", change), found::never);
  }
}

BOOST_AUTO_TEST_SUITE_END()
