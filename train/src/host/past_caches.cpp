#include "past_caches.hpp"

#include <emmintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace penstock::train::host {

void copy_past_caches(const void* from, void* to, std::size_t bytes) noexcept {
  constexpr std::size_t piece = sizeof(__m128i);
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  const std::size_t ahead = std::min(bytes, (piece - reinterpret_cast<std::uintptr_t>(to) % piece) % piece);
  std::memcpy(target, source, ahead);
  std::size_t done = ahead;
  for (; done + piece <= bytes; done += piece)
    _mm_stream_si128(reinterpret_cast<__m128i*>(target + done),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + done)));
  std::memcpy(target + done, source + done, bytes - done);
}

void settle_past_caches() noexcept { _mm_sfence(); }

}  // namespace penstock::train::host
