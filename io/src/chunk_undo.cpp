#include "chunk_undo.hpp"

#include "failure.hpp"
#include "filters/contexts.hpp"
#include "filters/packed_sizes.hpp"
#include "filters/registry.hpp"
#include "identifier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace penstock::io {
namespace {

constexpr std::uint64_t deflate_ratio = 1032;  // 258 bytes in two bits
constexpr std::uint64_t szip_ratio = 8192;     // 64 blocks of 32 samples of 4 bytes in 11 bits
constexpr std::size_t most_filters = 32;       // H5Z_MAX_NFILTERS: one bit each in a chunk's mask
constexpr std::size_t szip_front = 4;          // the size that it says

damage too_short(std::uint64_t bytes, const char* filter, std::uint64_t needed) {
  return damage(fmt::format("it holds {} bytes where its filter {} needs {}; copy or write the file again", bytes,
                            filter, needed));
}

damage makes_too_much(std::uint64_t most) {
  return damage(fmt::format(
      "a filter makes more than {} bytes of it, which no chunk of its size needs; copy or write the file again", most));
}

}  // namespace

struct chunk_undo::content {
  std::uint64_t bytes = 0;
  std::span<const std::byte> known;  // their front, or all of them
  std::span<std::byte> from, to;     // where they lie, and where what is made of them goes

  bool whole() const noexcept { return known.size() == bytes; }
  void hold(std::uint64_t made) {
    std::swap(from, to);
    bytes = made;
    known = from.first(made);
  }
};

chunk_undo::chunk_undo(const dataset_description& d) : chunk_bytes_(chunk_bytes(d)) {
  if (d.info.filters.size() > most_filters) return;
  filters_ = d.info.filters;
  for (const auto& f : filters_) {
    stage s;
    switch (f.id) {
      case H5Z_FILTER_DEFLATE: s = {kind::deflate, make_decoder(f)}; break;
      case H5Z_FILTER_SHUFFLE:
      case H5Z_FILTER_FLETCHER32: s = {kind::decoded, make_decoder(f)}; break;
      case H5Z_FILTER_SZIP: s = {kind::szip, make_decoder(f)}; break;
      case H5Z_FILTER_NBIT: s.how = nbit_packs(f.values) ? kind::nbit : kind::nothing; break;
      case H5Z_FILTER_SCALEOFFSET: s.how = scaleoffset_packs(f.values) ? kind::scaleoffset : kind::nothing; break;
      default: break;
    }
    if (!s.undo && (s.how == kind::deflate || s.how == kind::decoded)) s.how = kind::unknown;
    stages_.push_back(std::move(s));
  }
}

/// The front of what is stored is there for the first filter that wants it, and behind checksums.
chunk_undo::needs chunk_undo::needed(std::uint32_t mask) const noexcept {
  bool front = true;
  auto wanted = needs::size;
  for (std::size_t n = stages_.size(); n-- > 0;) {
    const auto& s = stages_[n];
    if ((mask >> n & 1) || s.how == kind::nothing) continue;
    if (s.how == kind::unknown) break;
    if (s.how == kind::deflate || (s.how == kind::szip && s.undo)) return needs::whole;
    if (s.how == kind::szip || s.how == kind::scaleoffset) {
      if (!front) return needs::whole;
      wanted = needs::front;
      if (s.how == kind::szip) break;
    }
    if (s.how == kind::nbit || s.how == kind::scaleoffset) break;  // nobody knows what they make
    front = front && !s.undo->writes();
  }
  return wanted;
}

std::size_t chunk_undo::half_bytes(std::uint64_t stored_bytes) const noexcept {
  const auto most = most_made(chunk_bytes_);
  auto bytes = stored_bytes;
  for (std::size_t n = stages_.size(); n-- > 0 && stages_[n].how != kind::unknown;) {
    const auto how = stages_[n].how;
    const auto ratio = how == kind::deflate ? deflate_ratio : how == kind::szip && stages_[n].undo ? szip_ratio : 1;
    if (__builtin_mul_overflow(bytes, ratio, &bytes)) return most;
  }
  return std::min(most, bytes);
}

void chunk_undo::look(std::uint64_t bytes, std::span<const std::byte> front, std::uint32_t mask, check_memory& checks,
                      const check_memory::halves& memory) const {
  content c{bytes, front, memory.stored, memory.other};
  for (std::size_t n = stages_.size(); n-- > 0;)
    if ((mask >> n & 1) == 0 && !undo(n, c, checks)) return;
  if (c.bytes < chunk_bytes_)
    throw damage(fmt::format("it holds {} of {} bytes; copy or write the file again", c.bytes, chunk_bytes_));
}

/// Each filter's output is kept for the next alone. False where it is libhdf5's to tell: a filter that is not known, or
/// what it says of itself does not decode, since libhdf5 gets no further.
bool chunk_undo::undo(std::size_t n, content& c, check_memory& checks) const {
  const auto& s = stages_[n];
  switch (s.how) {
    case kind::unknown: return false;
    case kind::nothing: return true;
    case kind::szip: return undo_szip(s, c, checks), true;
    case kind::nbit:
    case kind::scaleoffset: return undo_packed(n, c), true;
    default: break;
  }
  const auto& filter = *s.undo;
  // A checksum longer than the chunk would leave fewer bytes than none.
  if (!filter.writes() && c.bytes < filter.stored_bytes(0))
    throw too_short(c.bytes, filters_[n].name.c_str(), filter.stored_bytes(0));
  if (!c.whole()) {
    if (s.how == kind::deflate) return false;
    c.bytes = filter.decoded_bytes(c.bytes);
    c.known = filter.writes() ? std::span<const std::byte>{} : c.known.first(std::min(c.known.size(), c.bytes));
    return true;
  }
  const auto most = filter.compresses() ? c.to.size() : filter.decoded_bytes(c.bytes);
  std::optional<std::size_t> made;
  try {
    if (!filter.writes()) {
      c.known = filter.decode(c.known, {}, checks.workspace());
      c.bytes = c.known.size();
      return true;
    }
    made = filter.decode_at_most(c.known, c.to.first(most), checks.workspace());
  } catch (const failure&) {
    return false;
  }
  if (!made) throw makes_too_much(most);
  c.hold(*made);
  return true;
}

/// libhdf5 takes as much memory as the stream says, and does not look whether it filled it.
void chunk_undo::undo_szip(const stage& s, content& c, check_memory& checks) const {
  if (c.bytes < szip_front) throw too_short(c.bytes, "szip", szip_front);
  std::uint64_t says = 0;  // nothing, too, where it was packed: no such chunk was ever whole
  for (std::size_t b = 0; b < szip_front && b < c.known.size(); ++b)
    says |= static_cast<std::uint64_t>(c.known[b]) << (8 * b);
  if (says > most_made(chunk_bytes_)) throw makes_too_much(most_made(chunk_bytes_));
  if (!s.undo || !c.whole()) {
    c.bytes = says;
    c.known = {};
    return;
  }
  if (says > c.to.size()) throw makes_too_much(c.to.size());
  const auto workspace = checks.take_workspace(s.undo->extra_bytes(says));
  s.undo->decode(c.known, c.to.first(says), *workspace);
  c.hold(says);
}

void chunk_undo::undo_packed(std::size_t n, content& c) const {
  const bool nbit = stages_[n].how == kind::nbit;
  const auto& values = filters_[n].values;
  const auto sizes = nbit ? nbit_sizes(values) : scaleoffset_sizes(values, c.known);
  if (c.bytes < sizes.reads) throw too_short(c.bytes, filters_[n].name.c_str(), sizes.reads);
  if (sizes.makes > most_made(chunk_bytes_)) throw makes_too_much(most_made(chunk_bytes_));
  c.bytes = sizes.makes;
  c.known = {};
}

}  // namespace penstock::io
