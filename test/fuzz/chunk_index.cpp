// libFuzzer target of what Penstock does with a chunk index, whatever addresses, sizes and masks of filters libhdf5
// took from a file: reads of a dataset that is described by the first bytes of an input, from a small file that is the
// rest. libhdf5 takes no part. What must come is known: fill values for chunks that are missing, the file's bytes for
// chunks without filters, what the decoders make of a chunk by itself for others, and a failure where one of these
// cannot be.

#include "chunk_input.hpp"
#include "chunked_reader.hpp"
#include "failure.hpp"
#include "guarded_bytes.hpp"

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <optional>

// What is looked for on the stack costs a quarter of the time where exceptions are thrown as often as here.
extern "C" const char* __asan_default_options() { return "detect_stack_use_after_return=0"; }

namespace fuzz = penstock::fuzz;
namespace io = penstock::io;

namespace {

[[noreturn]] void wrong(const char* what) {
  std::fprintf(stderr, "SUMMARY: chunk-index: %s\n", what);
  std::abort();
}

/// What a chunk holds; `known` of its first bytes, where the rest lies past the end of the file. Nothing where it must
/// be refused.
struct content {
  std::vector<std::byte> bytes;
  std::size_t known = 0;
};

/// By the description alone, each chunk by itself.
class oracle {
 public:
  oracle(const fuzz::chunk_input& input, const io::chunk_grid& grid)
      : input_(input),
        grid_(grid),
        chunk_bytes_(io::chunk_bytes(*input.description)),
        filters_(input.description->info.filters, chunk_bytes_) {}

  /// Nothing where a read of the chunk must fail.
  const std::optional<content>& of(const io::chunk_entry& entry, const io::box& inside) {
    const bool unfiltered = input_.description->partial_chunks_unfiltered && grid_.partial(inside);
    const auto mask = unfiltered ? filters_.all() : entry.mask & filters_.all();
    for (const auto& k : known_)
      if (k.address == entry.address && k.bytes == entry.bytes && k.mask == mask) return k.holds;
    return known_.emplace_back(known{entry.address, entry.bytes, mask, find(entry, mask)}).holds;
  }

 private:
  struct known {
    std::uint64_t address;
    std::uint32_t bytes, mask;
    std::optional<content> holds;
  };

  std::optional<content> find(const io::chunk_entry& entry, std::uint32_t mask) const {
    const auto& file = input_.file;
    const bool plain = mask == filters_.all();
    if (entry.address > file.size() || (plain && entry.bytes != chunk_bytes_)) return std::nullopt;
    const auto rest = std::span(file).subspan(entry.address);
    content c{.bytes = std::vector<std::byte>(chunk_bytes_), .known = chunk_bytes_};
    if (plain) {
      c.known = std::min(rest.size(), chunk_bytes_);
      std::copy_n(rest.begin(), c.known, c.bytes.begin());
      return c;
    }
    if (entry.bytes > rest.size()) return std::nullopt;
    try {
      io::decode_workspace workspace(filters_.workspace(entry.bytes));
      filters_.decode(rest.first(entry.bytes), mask, c.bytes, workspace);
    } catch (const io::failure&) {
      return std::nullopt;
    } catch (const io::not_decodable&) {
      return std::nullopt;
    }
    return c;
  }

  const fuzz::chunk_input& input_;
  const io::chunk_grid& grid_;
  std::size_t chunk_bytes_;
  io::filter_chain filters_;
  std::deque<known> known_;
};

enum class verdict { right, wrong, must_fail, may_fail };

/// Compares what was read with what `entry` says of the chunk at `at`; `read` is null where the read failed.
verdict compare(const fuzz::chunk_input& input, const io::chunk_grid& grid, oracle& truth, const io::chunk_entry& entry,
                const io::box& inside, const io::read_request& request, const std::byte* read) {
  const auto& value = input.description->value;
  const bool missing = entry.address == io::chunk_entry::missing;
  static const std::optional<content> nothing{std::in_place};
  const auto& chunk = missing ? nothing : truth.of(entry, inside);
  if (!chunk) return verdict::must_fail;
  const auto strides = io::packed_strides(grid.chunk_shape(), grid.rank(), value.stored_bytes);
  auto result = !missing && chunk->known < chunk->bytes.size() ? verdict::may_fail : verdict::right;
  const auto wanted = io::intersection(inside, request.part);
  fuzz::for_each(wanted, [&](const io::extents& at) {
    std::size_t from = value.offset, to = 0;
    for (std::size_t k = 0; k < grid.rank(); ++k) {
      from += (at[k] - inside.start[k]) * strides[k];
      to += (at[k] - request.part.start[k]) * request.strides[k];
    }
    if (!missing && from + value.bytes > chunk->known) {
      result = verdict::must_fail;
    } else if (read != nullptr && result != verdict::must_fail) {
      const auto* expected = missing ? input.description->fill_value.stored()->data() : chunk->bytes.data() + from;
      if (std::memcmp(read + to, expected, value.bytes) != 0) result = verdict::wrong;
    }
    return result == verdict::right || result == verdict::may_fail;
  });
  return result;
}

/// `read`: null where the read failed.
void check(const fuzz::chunk_input& input, const io::chunk_grid& grid, oracle& truth, const io::read_request& request,
           const std::byte* read) {
  bool may_fail = false;
  io::box chunks;
  chunks.rank = grid.rank();
  for (std::size_t k = 0; k < grid.rank(); ++k) {
    chunks.start[k] = request.part.start[k] / grid.chunk_shape()[k];
    chunks.count[k] = (request.part.start[k] + request.part.count[k] - 1) / grid.chunk_shape()[k] - chunks.start[k] + 1;
  }
  fuzz::for_each(chunks, [&](const io::extents& at) {
    const auto inside = grid.inside(at);
    // Of a number that is there twice, either may be taken.
    bool right = false, fails = false, wrong_bytes = false;
    for (const auto& entry : input.entries_of(grid.number(at))) {
      switch (compare(input, grid, truth, entry, inside, request, read)) {
        case verdict::right: right = true; break;
        case verdict::may_fail: right = fails = true; break;
        case verdict::must_fail: fails = true; break;
        case verdict::wrong: wrong_bytes = true; break;
      }
    }
    if (read != nullptr && !right) wrong(wrong_bytes ? "other bytes than are stored" : "read what cannot be");
    may_fail = may_fail || fails;
    return true;
  });
  if (read == nullptr && !may_fail) wrong("a failure where all chunks are there");
}

/// Of exactly the sizes that a reader asks for, or one that grows to them and is kept, which saves most of the time.
io::scratch& scratch_for(const io::scratch_sizes& wanted, bool exact) {
  static std::optional<io::scratch> kept, of_this_input;
  static io::scratch_sizes sizes;
  if (exact) return of_this_input.emplace(wanted);
  auto grown = sizes;
  grown.include(wanted);
  if (!kept || grown.bytes() > sizes.bytes()) kept.emplace(sizes = grown);
  return *kept;
}

void check_rows(const io::failure& e, const io::read_request& request, const io::chunk_grid& grid) {
  const auto rows = grid.shape()[request.row_axis];
  if (e.rows && (e.rows->first >= rows || e.rows->count == 0 || e.rows->count > rows - e.rows->first))
    wrong("a failure names rows that there are not");
}

void read_and_check(const fuzz::chunk_input& input, const io::chunk_grid& grid, oracle& truth,
                    const io::chunked_reader& reader, const io::box& part, io::scratch& scratch) {
  static const fuzz::guarded_bytes memory(fuzz::most_values * fuzz::most_value_bytes);
  const auto value_bytes = input.description->value.bytes;
  const auto out = memory.last(part.values() * value_bytes);
  const io::read_request request{part, input.row_axis, out.data(), fuzz::strides_of(part, input.row_axis, value_bytes)};
  try {
    reader.read(request, scratch);
  } catch (const io::failure& e) {
    check_rows(e, request, grid);
    return check(input, grid, truth, request, nullptr);
  }
  check(input, grid, truth, request, out.data());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parsed = fuzz::parse_chunk_input({data, size});
  if (!parsed) return -1;
  const fuzz::chunk_input& input = *parsed;
  static const fuzz::shared_file file;
  file.hold(input.file);

  io::read_world world({});
  const auto number = world.add_file(file.path(), io::identify(file.path()));
  const io::chunk_grid grid(input.description->info.shape, input.description->info.chunk_shape);
  const io::chunked_reader reader(world, number, number, 0, input.description, grid, input.index(grid));
  const auto memory = reader.memory(input.row_axis);
  if (input.keeps_chunks && memory.cut_chunks > 0)
    world.cache = std::make_unique<io::chunk_cache>(memory.cut_chunks, memory.chunk_bytes);
  io::scratch& scratch = scratch_for(memory.scratch, input.exact_scratch);
  oracle truth(input, grid);
  for (const io::box& part : input.parts) read_and_check(input, grid, truth, reader, part, scratch);
  for (const io::box& part : reader.sample_chunks(3)) {
    reader.stored(part);
    read_and_check(input, grid, truth, reader, part, scratch);
  }
  return 0;
}
