#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace penstock {

/// A 64-bit checksum of bytes that come in pieces; how they are cut makes no difference. Every step can be undone, so
/// that damage within one word of eight bytes is always found; other damage is missed once in 2^64. It guards against
/// accidents: whoever forges a file can forge its checksum.
class checksum {
 public:
  void add(std::span<const std::byte> bytes) noexcept {
    length_ += bytes.size();
    while (pending_bytes_ != 0 && !bytes.empty()) {
      pending_[pending_bytes_++] = bytes.front();
      bytes = bytes.subspan(1);
      if (pending_bytes_ == word_bytes) fold(pending_), pending_bytes_ = 0;
    }
    for (; bytes.size() >= word_bytes; bytes = bytes.subspan(word_bytes)) fold(bytes.data());
    for (const std::byte byte : bytes) pending_[pending_bytes_++] = byte;
  }

  std::uint64_t value() const noexcept {
    checksum whole = *this;
    std::memset(whole.pending_ + pending_bytes_, 0, word_bytes - pending_bytes_);
    whole.fold(whole.pending_);
    std::memcpy(whole.pending_, &length_, word_bytes);
    whole.fold(whole.pending_);
    return whole.state_ ^ (whole.state_ >> 32);
  }

 private:
  static constexpr std::size_t word_bytes = 8;

  void fold(const std::byte* from) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, from, word_bytes);
    state_ = std::rotl(state_ ^ (word * 0x9e3779b97f4a7c15u), 29) * 0xbf58476d1ce4e5b9u;
  }

  std::uint64_t state_ = 0x94d049bb133111ebu;
  std::uint64_t length_ = 0;
  std::byte pending_[word_bytes]{};
  std::size_t pending_bytes_ = 0;
};

}  // namespace penstock
