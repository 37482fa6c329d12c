#include "../failure.hpp"
#include "decoder.hpp"
#include "shuffle.hpp"

#include <libaec.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace penstock::io {
namespace {

/// Filter 4: the raw size (4 bytes, little-endian), then an AEC stream (CCSDS 121.0-B). The parameters are szip's.
class szip final : public decoder {
 public:
  // What szip's options mean to libaec (its sz_compat.c).
  static constexpr unsigned most_significant_first = 16, nearest_neighbour = 32;

  szip(unsigned options, unsigned block, unsigned bits, unsigned scanline)
      // Elements of 32 and 64 bits are stored byte by byte, as samples of 8 bits: decoding them as wide samples would
      // succeed, with wrong values.
      : interleaved_bytes_(bits == 32 || bits == 64 ? bits / 8 : 1), block_(block), scanline_(scanline) {
    bits_ = interleaved_bytes_ > 1 ? 8 : bits;
    sample_bytes_ = bits_ > 16 ? 4 : bits_ > 8 ? 2 : 1;
    blocks_per_line_ = (scanline + block - 1) / block;
    flags_ = (options & most_significant_first ? AEC_DATA_MSB : 0u) |
             (options & nearest_neighbour ? AEC_DATA_PREPROCESS : 0u);
  }

  bool compresses() const noexcept override { return true; }
  std::size_t extra_bytes(std::size_t decoded) const noexcept override {
    const std::size_t line = scanline_ * sample_bytes_;
    const std::size_t lines = (decoded + line - 1) / line;
    return std::max(decoded, lines * padded_line());
  }

  std::span<const std::byte> decode(std::span<const std::byte> in, std::span<std::byte> out,
                                    decode_workspace& workspace) const override {
    if (in.size() < 4) throw damage("its szip size is missing; copy or write the file again");
    std::size_t size = 0;
    for (std::size_t b = 0; b < 4; ++b) size |= static_cast<std::size_t>(in[b]) << (8 * b);
    if (size > out.size()) throw not_decodable("its szip data are longer than the chunk");
    if (size < out.size()) ends_short();  // libhdf5 would give undefined bytes for the rest
    const bool padded = scanline_ % block_ != 0, direct = !padded && interleaved_bytes_ == 1;
    auto samples = direct ? out : workspace.extra().first(padded ? extra_bytes(out.size()) : out.size());
    const auto given = decode_samples(in.subspan(4), samples);
    if (direct) {
      if (given < out.size()) ends_short();
      return out;
    }
    const auto kept = padded ? remove_padding(samples.first(given)) : given;
    if (kept < out.size()) ends_short();
    if (interleaved_bytes_ == 1)
      std::memcpy(out.data(), samples.data(), out.size());
    else
      unshuffle(samples.data(), out.data(), out.size() / interleaved_bytes_, interleaved_bytes_);
    return out;
  }

 private:
  [[noreturn]] static void ends_short() { throw damage("its szip data end short; copy or write the file again"); }
  std::size_t padded_line() const noexcept { return blocks_per_line_ * block_ * sample_bytes_; }

  std::size_t decode_samples(std::span<const std::byte> in, std::span<std::byte> out) const {
    // libaec calls that a want of memory.
    if (out.size() % sample_bytes_ != 0)
      throw damage("its szip samples do not end where the chunk does; copy or write the file again");
    aec_stream stream{};
    stream.bits_per_sample = bits_;
    stream.block_size = block_;
    stream.rsi = blocks_per_line_;
    stream.flags = flags_;
    stream.next_in = reinterpret_cast<const unsigned char*>(in.data());
    stream.avail_in = in.size();
    stream.next_out = reinterpret_cast<unsigned char*>(out.data());
    stream.avail_out = out.size();
    const int how = aec_buffer_decode(&stream);
    if (how == AEC_MEM_ERROR) throw std::bad_alloc();
    if (how != AEC_OK) throw damage("its szip data are damaged; copy or write the file again");
    return stream.total_out;
  }

  /// Each line was filled up to whole blocks. Gives the bytes that are left.
  std::size_t remove_padding(std::span<std::byte> samples) const {
    const std::size_t line = scanline_ * sample_bytes_;
    std::size_t to = 0;
    for (std::size_t from = 0; from < samples.size(); from += padded_line()) {
      const auto bytes = std::min(line, samples.size() - from);
      std::memmove(samples.data() + to, samples.data() + from, bytes);
      to += bytes;
    }
    return to;
  }

  std::size_t interleaved_bytes_;
  unsigned bits_ = 0, block_, scanline_, sample_bytes_ = 1, blocks_per_line_ = 1, flags_ = 0;
};

}  // namespace

std::unique_ptr<decoder> make_szip(const filter& f) {
  if (f.values.size() < 4) return nullptr;
  const unsigned block = f.values[1], bits = f.values[2], scanline = f.values[3];
  const bool known_bits = (bits >= 1 && bits <= 24) || bits == 32 || bits == 64;
  // Odd blocks make libaec write past its memory. Samples of three bytes are left to libhdf5. A line is a block or
  // longer: szip refuses others, and padding would make much of little.
  if (!known_bits || (bits > 16 && bits <= 24) || block < 2 || block > 64 || block % 2 != 0 || scanline < block ||
      scanline > 4096 * block)
    return nullptr;
  return std::make_unique<szip>(f.values[0], block, bits, scanline);
}

}  // namespace penstock::io
