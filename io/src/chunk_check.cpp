#include "chunk_check.hpp"

#include "filters/contexts.hpp"
#include "filters/registry.hpp"
#include "read_driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

namespace penstock::io {
namespace {

constexpr std::uint64_t remembered = 4096;
constexpr std::uint64_t most_ratio = 1032;  // of deflate: 258 bytes in two bits
constexpr std::size_t most_filters = 32;    // H5Z_MAX_NFILTERS: one bit each in a chunk's mask

/// What libhdf5 would be about to read.
struct found_chunk {
  bool there = false;  ///< otherwise nothing is stored
  std::uint64_t bytes = 0;
  std::uint32_t mask = 0;
};

/// As the index has it. Scans: for errors.
found_chunk look_up(hid_t dataset, const hsize_t* offset) {
  haddr_t address = HADDR_UNDEF;
  hsize_t bytes = 0;
  unsigned mask = 0;
  if (H5Dget_chunk_info_by_coord(dataset, offset, &mask, &address, &bytes) < 0 || address == HADDR_UNDEF) return {};
  return {true, bytes, mask};
}

found_chunk find(hid_t dataset, const hsize_t* offset) {
  const file_id file(checked(H5Iget_file_id(dataset), "its file cannot be found"));
  noted_reads reads(file.native());
  found_chunk found;
  std::array<std::byte, 64> untouched{};  // the driver skips the transfer
  take_driver_error();
  if (H5Dread_chunk(dataset, H5P_DEFAULT, offset, &found.mask, untouched.data()) < 0) {
    const int system = take_driver_error();
    const auto cause = library_cause_of_failure();
    const auto messages = library_messages();
    hsize_t bytes = 0;
    const bool missing = messages.find("address isn't defined") != std::string::npos ||
                         (H5Dget_chunk_storage_size(dataset, offset, &bytes) >= 0 && bytes == 0);
    if (system != 0 || !missing) throw_unread(system, cause, messages);
    return {};
  }
  found.there = true;
  const auto where = reads.only();
  if (!where) return look_up(dataset, offset);  // it has no bytes, or this libhdf5 reads in another way
  found.bytes = where->bytes;
  return found;
}

/// 0 where chunks are too many to be numbered.
std::uint64_t number_of_chunks(const dataset_description& d) {
  std::uint64_t chunks = 1;
  for (std::size_t k = 0; k < d.rank; ++k) {
    const auto along = d.info.shape[k] / d.info.chunk_shape[k] + (d.info.shape[k] % d.info.chunk_shape[k] != 0);
    if (__builtin_mul_overflow(chunks, along, &chunks)) return 0;
  }
  return chunks < ~std::uint64_t{0} ? chunks : 0;
}

/// Bytes that the filters may make of such a chunk: deflate does not make more than its ratio.
std::size_t undone_bytes(std::uint64_t chunk_bytes, std::uint64_t stored_bytes, std::uint32_t deflates) {
  const auto most = chunk_check::most_inflated(chunk_bytes);
  auto bytes = stored_bytes;
  for (int n = 0; n < std::popcount(deflates); ++n)
    if (__builtin_mul_overflow(bytes, most_ratio, &bytes)) return most;
  return std::min(most, bytes);
}

}  // namespace

damage wrong_size(std::uint64_t stored, std::uint64_t chunk_bytes) {
  return damage(
      fmt::format("a chunk without filters holds {} of {} bytes; copy or write the file again", stored, chunk_bytes));
}

damage no_bytes(std::uint64_t chunk_bytes) {
  return damage(fmt::format("a chunk of {} bytes is stored in none; copy or write the file again", chunk_bytes));
}

chunk_check::chunk_check(const dataset_description& d, check_memory& memory) : d_(d), memory_(memory) {
  if (d.info.layout != layout::chunked) return;
  chunk_bytes_ = chunk_bytes(d);
  sound_.resize(std::min(remembered, number_of_chunks(d)));
  filters_ = filters_of(d);
}

chunk_check::undone chunk_check::filters_of(const dataset_description& d) {
  undone found;
  if (d.info.filters.size() > most_filters) return found;
  found.stages.resize(d.info.filters.size());
  bool followed = true;
  for (std::size_t n = d.info.filters.size(); n-- > 0;) {
    const auto& f = d.info.filters[n];
    if (f.id == H5Z_FILTER_DEFLATE || f.id == H5Z_FILTER_SHUFFLE || f.id == H5Z_FILTER_FLETCHER32)
      found.stages[n] = make_decoder(f);
    followed = followed && found.stages[n];
    if (followed && f.id == H5Z_FILTER_DEFLATE) found.deflates |= 1u << n;
  }
  return found;
}

std::size_t chunk_check::half_bytes(const dataset_description& d, std::uint64_t stored_bytes) {
  if (d.info.layout != layout::chunked) return 0;
  const auto deflates = filters_of(d).deflates;
  return deflates != 0 ? undone_bytes(chunk_bytes(d), stored_bytes, deflates) : 0;
}

chunk_check::~chunk_check() = default;

std::uint64_t chunk_check::number(const extents& at) const noexcept {
  std::uint64_t n = 0;
  for (std::size_t k = 0; k < d_.rank; ++k)
    n = n * (d_.info.shape[k] / d_.info.chunk_shape[k] + (d_.info.shape[k] % d_.info.chunk_shape[k] != 0)) + at[k];
  return n;
}

void chunk_check::look(hid_t dataset, const box& part, std::size_t row_axis) {
  if (d_.info.layout != layout::chunked || part.empty()) return;
  const auto& chunk = d_.info.chunk_shape;
  extents first{}, last{};
  for (std::size_t k = 0; k < part.rank; ++k) {
    first[k] = part.start[k] / chunk[k];
    last[k] = (part.start[k] + part.count[k] - 1) / chunk[k];
  }
  for (auto at = first;;) {
    try {
      const library_guard guard;
      look_at(dataset, at);
    } catch (failure& e) {
      const auto begin = at[row_axis] * chunk[row_axis];
      e.rows = row_range{begin, std::min(chunk[row_axis], d_.info.shape[row_axis] - begin)};
      throw;
    }
    std::size_t k = part.rank;
    while (k > 0 && at[k - 1] == last[k - 1]) {
      --k;
      at[k] = first[k];
    }
    if (k == 0) break;
    ++at[k - 1];
  }
}

bool chunk_check::is_plain(std::uint32_t mask, const extents& at) const noexcept {
  const auto filters = d_.info.filters.size();
  if (filters < most_filters && (mask | ~0u << filters) == ~0u) return true;
  if (filters == most_filters && mask == ~0u) return true;
  if (!d_.partial_chunks_unfiltered) return false;
  for (std::size_t k = 0; k < d_.rank; ++k)
    if (d_.info.shape[k] - at[k] * d_.info.chunk_shape[k] < d_.info.chunk_shape[k]) return true;
  return false;
}

void chunk_check::look_at(hid_t dataset, const extents& at) {
  const auto n = number(at);
  auto* known = sound_.empty() ? nullptr : &sound_[n % sound_.size()];
  if (known != nullptr && *known == n + 1) return;
  std::array<hsize_t, max_rank> offset{};
  for (std::size_t k = 0; k < d_.rank; ++k) offset[k] = at[k] * d_.info.chunk_shape[k];
  const auto found = find(dataset, offset.data());
  if (found.there) {
    const bool plain = is_plain(found.mask, at);
    const auto is_so = [&] {
      const auto listed = look_up(dataset, offset.data());
      return listed.there && listed.bytes == found.bytes && listed.mask == found.mask;
    };
    if (found.bytes == 0 && is_so()) throw no_bytes(chunk_bytes_);
    if (plain && found.bytes != chunk_bytes_ && is_so()) throw wrong_size(found.bytes, chunk_bytes_);
    if (!plain && (filters_.deflates & ~found.mask) != 0) {
      if (found.bytes > most_inflated(chunk_bytes_))
        throw damage(fmt::format("a chunk of {} bytes is stored in {}; copy or write the file again", chunk_bytes_,
                                 found.bytes));
      const auto memory = memory_.borrow(undone_bytes(chunk_bytes_, found.bytes, filters_.deflates));
      std::uint32_t mask = 0;
      take_driver_error();
      if (H5Dread_chunk(dataset, H5P_DEFAULT, offset.data(), &mask, memory.stored.data()) < 0) {
        const int system = take_driver_error();
        const auto cause = library_cause_of_failure();
        throw_unread(system, cause, library_messages());
      }
      undo(memory, found.bytes, mask);
    }
  }
  if (known != nullptr) *known = n + 1;
}

/// Each filter's output is kept for the next alone. What does not decode is libhdf5's to tell: it gets no further.
void chunk_check::undo(const check_memory::halves& memory, std::size_t stored_bytes, std::uint32_t mask) {
  auto from = memory.stored, to = memory.other;
  std::span<const std::byte> current = from.first(stored_bytes);
  for (std::size_t n = filters_.stages.size(); n-- > 0;) {
    if (mask >> n & 1) continue;
    if (!filters_.stages[n]) return;
    const auto& filter = *filters_.stages[n];
    const auto most = filter.compresses() ? to.size() : filter.decoded_bytes(current.size());
    std::optional<std::size_t> bytes;
    try {
      if (!filter.writes()) {
        current = filter.decode(current, {}, memory_.workspace());
        continue;
      }
      bytes = filter.decode_at_most(current, to.first(most), memory_.workspace());
    } catch (const failure&) {
      return;
    }
    if (!bytes)
      throw damage(
          fmt::format("a filter makes more than {} bytes of it, which no chunk of its size needs; copy or write "
                      "the file again",
                      most));
    std::swap(from, to);
    current = from.first(*bytes);
  }
  if (current.size() < chunk_bytes_)
    throw damage(fmt::format("it holds {} of {} bytes; copy or write the file again", current.size(), chunk_bytes_));
}

}  // namespace penstock::io
