#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace penstock {

inline namespace literals {
constexpr std::size_t operator""_KiB(unsigned long long n) { return static_cast<std::size_t>(n) << 10; }
constexpr std::size_t operator""_MiB(unsigned long long n) { return static_cast<std::size_t>(n) << 20; }
constexpr std::size_t operator""_GiB(unsigned long long n) { return static_cast<std::size_t>(n) << 30; }
}  // namespace literals

/// "16MiB", "1.5 GiB", "512 KB", "4096" (bytes) as a number of bytes. Powers of 1024 with i, of 1000 without; case is
/// ignored. Throws std::invalid_argument that shows the text and the forms that are understood.
std::size_t parse_bytes(std::string_view text);

/// Bytes for people: "512 B", "1.50 MiB". Three significant digits.
std::string format_bytes(std::size_t bytes);

/// `bytes` rounded up to a multiple of `alignment` (a power of two).
constexpr std::size_t align_up(std::size_t bytes, std::size_t alignment) noexcept {
  return (bytes + alignment - 1) & ~(alignment - 1);
}

}  // namespace penstock
