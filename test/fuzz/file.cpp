// libFuzzer target of opening files, their chunk indices, and reading from all their datasets: an input is a whole
// file.
//
// libhdf5 parses metadata, and can itself crash, or run for ever, on crafted ones. Each input is tried in a child
// first: what libhdf5 does wrong there is counted and left out; what Penstock does wrong is a finding. The mutations
// are of the kind that reach Penstock: bytes change in place, so that addresses hold, and checksums of object headers
// are mended.

#include "memory_file.hpp"
#include "whose_fault.hpp"

#include <penstock/io/error.hpp>
#include <penstock/io/file.hpp>
#include <penstock/io/row_reader.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);
extern "C" std::uint32_t H5_checksum_metadata(const void* data, std::size_t bytes, std::uint32_t start);  // libhdf5's
extern "C" const char* __asan_default_options() { return "max_allocation_size_mb=512:allocator_may_return_null=1"; }

namespace fuzz = penstock::fuzz;
namespace io = penstock::io;

namespace {

constexpr std::size_t most_read = std::size_t{1} << 20, most_planned = std::size_t{64} << 20;
constexpr unsigned seconds = 20;

void read_some(const io::row_reader& reader) {
  if (reader.row_bytes() > most_read || reader.rows() == 0) return;
  const auto rows = std::min<std::uint64_t>(reader.rows(), most_read / std::max<std::size_t>(reader.row_bytes(), 1));
  std::vector<std::byte> out(rows * reader.row_bytes());
  for (const auto first : {std::uint64_t{0}, reader.rows() - rows, (reader.rows() - rows) / 2}) {
    try {
      reader.read(first, rows, out);
    } catch (const io::error&) {
    }
  }
}

void open_and_read(const std::filesystem::path& path, const io::dataset_info& dataset) {
  try {
    io::row_reader reader({{.file = path, .dataset = dataset.path}});
    std::size_t planned = 0;
    for (const auto& item : reader.memory({})) planned += item.bytes;
    if (planned > most_planned) return;
    reader.reserve({});
    read_some(reader);
  } catch (const io::error&) {
  }
}

/// Whether libhdf5 knew it for a file of its own.
bool visit(const std::filesystem::path& path) {
  try {
    const io::file file(path);
    for (const auto& dataset : file.datasets()) open_and_read(path, dataset);
    return true;
  } catch (const io::error&) {
    return false;
  }
}

/// Counts what is not ours, and what could be opened at all; says so when the program ends.
struct counter {
  std::size_t inputs = 0, libhdf5 = 0, opened = 0;
  ~counter() {
    std::fprintf(stderr, "stat::libhdf5_faults: %zu of %zu inputs\nstat::opened: %zu\n", libhdf5, inputs, opened);
  }
};

std::uint64_t number(const std::uint8_t* at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t n = 0; n < bytes; ++n) value |= std::uint64_t{at[n]} << (8 * n);
  return value;
}

/// Object headers of the newer format end with a checksum (format specification, IV.A.1.b).
void mend_object_headers(std::uint8_t* data, std::size_t size) {
  constexpr std::string_view signature("OHDR");
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  for (auto at = file.find(signature); at != file.npos; at = file.find(signature, at + 1)) {
    if (size - at < 24) return;
    const unsigned flags = data[at + 5];
    const std::size_t width = std::size_t{1} << (flags & 3);
    const std::size_t start = 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0) + width;
    const auto messages = number(data + at + start - width, width);
    if (messages > size || at + start + messages + 4 > size) continue;
    const auto sum = H5_checksum_metadata(data + at, start + messages, 0);
    std::memcpy(data + at + start + messages, &sum, sizeof sum);
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  if (size < 16) return LLVMFuzzerMutate(data, size, most);
  std::minstd_rand chance(seed);
  const auto below = [&](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(chance);
  };
  // Now and then the file is cut; libFuzzer's own changes are confined to a few bytes, which keep their number.
  if (below(64) == 0) return 1 + below(size);
  // Places where headers lie are tried more often than values.
  static constexpr std::string_view places[] = {"TREE", "OHDR", "SNOD", "BTHD", "FAHD", "EAHD", "FADB", "GCOL"};
  std::size_t at = below(size);
  if (below(4) != 0) {
    const std::string_view file(reinterpret_cast<const char*>(data), size);
    const auto found = file.find(places[below(std::size(places))], at);
    if (found != file.npos) at = std::min(size - 1, found + below(256));
  }
  const std::size_t window = std::min(size - at, std::size_t{1} << below(4));
  LLVMFuzzerMutate(data + at, window, window);
  mend_object_headers(data, size);
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static counter count;
  const fuzz::memory_file file(data, size);
  const auto path = file.path();
  ++count.inputs;
  switch (fuzz::try_in_child([&] { visit(path); }, seconds)) {
    case fuzz::outcome::fault_of_libhdf5: ++count.libhdf5; return -1;
    case fuzz::outcome::fault_of_penstock:
      visit(path);
      std::fputs("a child failed where its parent did not\n", stderr);
      std::abort();
    case fuzz::outcome::fine: break;
  }
  count.opened += visit(path) ? 1 : 0;
  return 0;
}
