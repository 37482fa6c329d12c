#include "tiles.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace penstock::train::host {
namespace {

constexpr std::size_t grain = 16;  // extents are multiples of it, as OpenBLAS's kernels like

std::size_t pieces(std::size_t n, std::size_t of) { return std::max<std::size_t>(1, (n + of - 1) / of); }

/// The extent of each piece where `n` is cut into equal ones of at most `most`, a multiple of the grain.
std::size_t extent_of(std::size_t n, std::size_t most) { return pieces(pieces(n, pieces(n, most)), grain) * grain; }

/// Near these sizes, packing is a small part of the work, and a few cores have enough to share.
tile_shape packed_tiles(const product& p) noexcept {
  constexpr std::size_t columns = 256, many = 8;
  const bool large = pieces(p.rows, 256) * pieces(p.columns, columns) >= many;
  return {extent_of(p.rows, large ? 256 : 128), extent_of(p.columns, columns), p.depth};
}

/// OpenBLAS packs nothing where rows x columns x depth is at most 100^3, and, with its second factor transposed, rows x
/// columns at most 1200. Such tiles take most of the speed that the processor has, and any number of cores finds enough
/// of them.
tile_shape unpacked_tiles(const product& p) noexcept {
  const bool dots = p.transpose_b && !p.transpose_a;
  const std::size_t rows = dots ? 32 : 48, columns = dots ? 32 : 64, depth = dots ? 976 : 256;
  return {extent_of(p.rows, rows), extent_of(p.columns, columns), extent_of(p.depth, depth)};
}

bool equal_in_any_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

tile_shape tiles_of(const product& p, std::size_t element_bytes, bool unpacked) noexcept {
  // What is not packed is read again and again where it lies: it must stay near, and not be all too thin.
  constexpr std::size_t near_bytes = std::size_t{8} << 20, least_depth = 32;
  const std::size_t bytes = (p.rows + p.columns) * p.depth * element_bytes;
  const bool thin = p.transpose_b && p.depth < least_depth;
  return unpacked && bytes <= near_bytes && !thin ? unpacked_tiles(p) : packed_tiles(p);
}

bool has_unpacked_kernels(std::string_view core) noexcept {
  constexpr std::array<std::string_view, 3> names{"SkylakeX", "Cooperlake", "SapphireRapids"};
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return equal_in_any_case(name, core); });
}

}  // namespace penstock::train::host
