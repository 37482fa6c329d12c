#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace penstock::pipeline {

inline std::uint16_t swapped(std::uint16_t word) noexcept { return __builtin_bswap16(word); }
inline std::uint32_t swapped(std::uint32_t word) noexcept { return __builtin_bswap32(word); }
inline std::uint64_t swapped(std::uint64_t word) noexcept { return __builtin_bswap64(word); }

template <class Word>
void swap_words(std::span<std::byte> bytes) noexcept {
  for (std::size_t at = 0; at + sizeof(Word) <= bytes.size(); at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    word = swapped(word);
    std::memcpy(bytes.data() + at, &word, sizeof word);
  }
}

/// Reverses the byte order of elements of 1, 2, 4 or 8 bytes in place.
inline void swap_bytes(std::span<std::byte> bytes, std::size_t element_bytes) noexcept {
  switch (element_bytes) {
    case 2: return swap_words<std::uint16_t>(bytes);
    case 4: return swap_words<std::uint32_t>(bytes);
    case 8: return swap_words<std::uint64_t>(bytes);
    default: return;
  }
}

}  // namespace penstock::pipeline
