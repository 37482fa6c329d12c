#include "chunk_check.hpp"

#include "read_driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace penstock::io {
namespace {

constexpr std::uint64_t remembered = 4096;
constexpr std::size_t most_filters = 32;  // H5Z_MAX_NFILTERS: one bit each in a chunk's mask

/// As the index has it. Scans: for errors.
found_chunk look_up(hid_t dataset, const hsize_t* offset) {
  haddr_t address = HADDR_UNDEF;
  hsize_t bytes = 0;
  unsigned mask = 0;
  if (H5Dget_chunk_info_by_coord(dataset, offset, &mask, &address, &bytes) < 0 || address == HADDR_UNDEF) return {};
  return {true, bytes, mask, {}};
}

/// `front`: where its first bytes go; no more of it is read.
found_chunk find(hid_t dataset, const hsize_t* offset, std::span<std::byte> front) {
  const file_id file(checked(H5Iget_file_id(dataset), "its file cannot be found"));
  noted_reads reads(file.native(), front.size());
  found_chunk found;
  std::array<std::byte, 64> untouched{};  // the driver skips the transfer
  take_driver_error();
  if (H5Dread_chunk(dataset, H5P_DEFAULT, offset, &found.mask, front.empty() ? untouched.data() : front.data()) < 0) {
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
  found.front = front.first(std::min<std::uint64_t>(front.size(), where->bytes));
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
  filters_ = chunk_undo(d);
}

std::size_t chunk_check::half_bytes(const dataset_description& d, std::uint64_t stored_bytes) {
  if (d.info.layout != layout::chunked) return 0;
  const chunk_undo filters(d);
  return filters.needed(0) == chunk_undo::needs::whole ? filters.half_bytes(stored_bytes) : 0;
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
      if (e.damaged && !d_.info.filters.empty()) e.lost = {e.rows->first, e.rows->count};
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
  // Of chunks that leave out a filter more may be wanted, or less.
  std::array<std::byte, chunk_undo::front_bytes> front{};
  const bool with_front = filters_.needed(0) == chunk_undo::needs::front;
  const auto found = find(dataset, offset.data(), std::span(front).first(with_front ? front.size() : 0));
  if (found.there) {
    const bool plain = is_plain(found.mask, at);
    const auto is_so = [&] {
      const auto listed = look_up(dataset, offset.data());
      return listed.there && listed.bytes == found.bytes && listed.mask == found.mask;
    };
    if (found.bytes == 0 && is_so()) throw no_bytes(chunk_bytes_);
    if (plain && found.bytes != chunk_bytes_ && is_so()) throw wrong_size(found.bytes, chunk_bytes_);
    if (!plain && found.bytes > 0) look_into(dataset, offset.data(), found);
  }
  if (known != nullptr) *known = n + 1;
}

void chunk_check::look_into(hid_t dataset, const hsize_t* offset, const found_chunk& found) {
  const auto bytes = found.bytes;
  const auto needed = filters_.needed(found.mask);
  if (needed == chunk_undo::needs::size || (needed == chunk_undo::needs::front && !found.front.empty())) {
    try {
      return filters_.look(bytes, found.front, found.mask, memory_, {});
    } catch (const damage&) {
      // Not where a libhdf5 reads in another way.
      const auto listed = look_up(dataset, offset);
      if (!listed.there || listed.bytes == bytes) throw;
      return;
    }
  }
  const auto most = chunk_undo::most_made(chunk_bytes_);
  if (bytes > most)
    throw damage(fmt::format("a chunk of {} bytes is stored in {}; copy or write the file again", chunk_bytes_, bytes));
  const auto memory = memory_.borrow(filters_.half_bytes(bytes));
  std::uint32_t mask = 0;
  take_driver_error();
  if (H5Dread_chunk(dataset, H5P_DEFAULT, offset, &mask, memory.stored.data()) < 0) {
    const int system = take_driver_error();
    const auto cause = library_cause_of_failure();
    throw_unread(system, cause, library_messages());
  }
  filters_.look(bytes, memory.stored.first(bytes), mask, memory_, memory);
}

}  // namespace penstock::io
