#pragma once

#include <cstddef>

namespace penstock::io {

/// Puts elements together whose byte b lies at b * elements + i.
void unshuffle(const std::byte* in, std::byte* out, std::size_t elements, std::size_t element_bytes) noexcept;

}  // namespace penstock::io
