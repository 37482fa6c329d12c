#include "filter_chain.hpp"

#include "../failure.hpp"
#include "registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

namespace penstock::io {
namespace {

constexpr std::size_t max_filters = 32;                            // H5Z_MAX_NFILTERS: one bit each in a chunk's mask
constexpr std::uint64_t max_chunk_bytes = std::uint64_t{1} << 30;  // scratch memory is planned in chunks

fault before_decoding(fault_injector& faults, const std::string& filter, std::size_t bytes) {
  const fault f = faults.before(fault_site::decode, filter, 0, bytes);
  if (f.delay.count() > 0) std::this_thread::sleep_for(f.delay);
  if (f.error != 0) throw damage(fmt::format("its {} filter cannot be undone; copy or write the file again", filter));
  return f;
}

}  // namespace

std::string why_not_decodable(const std::vector<filter>& filters, std::uint64_t chunk_bytes) {
  if (filters.size() > max_filters) return fmt::format("it has {} filters", filters.size());
  if (!filters.empty() && chunk_bytes > max_chunk_bytes) return "its chunks are larger than 1 GiB";
  std::size_t compressors = 0;
  for (const auto& f : filters) {
    const auto d = make_decoder(f);
    if (!d) return fmt::format("filter {} ({}) is decoded by libhdf5", f.id, f.name);
    compressors += d->compresses();
  }
  // The size between two compressors is known to neither.
  return compressors > 1 ? "it is compressed twice" : "";
}

filter_chain::filter_chain(const std::vector<filter>& filters, std::size_t chunk_bytes) : chunk_bytes_(chunk_bytes) {
  for (const auto& f : filters) {
    decoders_.push_back(make_decoder(f));
    names_.push_back(f.name);
  }
}

workspace_sizes filter_chain::workspace(std::size_t stored) const noexcept {
  workspace_sizes sizes;
  std::size_t writing = 0, bytes = chunk_bytes_;
  for (const auto& d : decoders_) {
    writing +=
        d->writes() || d->stored_bytes(0) > 0;  // with a checksum beneath, the last filter cannot write into the chunk
    sizes.extra_bytes = std::max(sizes.extra_bytes, d->extra_bytes(bytes));
    bytes = d->stored_bytes(bytes);
  }
  sizes.spares = std::min<std::size_t>(writing > 0 ? writing - 1 : 0, 2);
  sizes.spare_bytes = std::max(bytes, stored);
  return sizes;
}

void filter_chain::decode(std::span<const std::byte> stored, std::uint32_t mask, std::span<std::byte> chunk,
                          decode_workspace& workspace, fault_injector* faults) const {
  std::array<std::size_t, max_filters>
      input_bytes{};  // of each filter, when the chunk was written; right up to a compressor
  std::size_t bytes = chunk_bytes_, writing = 0;
  bool sized = true;
  for (std::size_t n = 0; n < decoders_.size(); ++n) {
    if (mask >> n & 1) continue;
    sized = sized && !decoders_[n]->compresses();
    input_bytes[n] = bytes;
    bytes = decoders_[n]->stored_bytes(bytes);
    writing += decoders_[n]->writes();
  }
  // libhdf5 undoes the filters of all that is stored, and takes the chunk from the front. Whether a workspace has room
  // for that may not decide.
  if (sized && stored.size() > bytes && writing > 0) throw not_decodable("its stored bytes are more than its chunk's");
  auto current = stored;
  std::size_t next_spare = 0;
  for (std::size_t n = decoders_.size(); n-- > 0;) {
    if (mask >> n & 1) continue;
    const auto& d = *decoders_[n];
    const std::size_t size = d.compresses() ? input_bytes[n] : d.decoded_bytes(current.size());
    std::span<std::byte> out;
    if (d.writes()) {
      if (--writing == 0 && size == chunk.size()) {
        out = chunk;
      } else {
        out = workspace.spare(next_spare);
        next_spare ^= 1;
        if (size > out.size()) throw damage("its stored size does not fit its chunk; copy or write the file again");
        out = out.first(size);
      }
    }
    const fault f = faults != nullptr ? before_decoding(*faults, names_[n], size) : fault{};
    current = d.decode(current, out, workspace);
    if (faults != nullptr) {
      faults->after_decode(names_[n], out);
      current = current.first(std::min(current.size(), f.at_most));
    }
  }
  if (current.size() < chunk.size())
    throw damage(fmt::format("it holds {} of {} bytes; copy or write the file again", current.size(), chunk.size()));
  if (current.data() != chunk.data()) std::memcpy(chunk.data(), current.data(), chunk.size());
}

}  // namespace penstock::io
