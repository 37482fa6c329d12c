#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::train::cuda {

/// What cuBLASLt chose for one product: what asks for it, in numbers, and the algorithm, opaque words.
struct chosen_algorithm {
  static constexpr std::size_t keys = 10, words = 8;
  std::array<std::uint64_t, keys> product{};
  std::array<std::uint64_t, words> algorithm{};

  friend bool operator==(const chosen_algorithm&, const chosen_algorithm&) = default;
};

/// One line each, in hexadecimal.
std::string to_text(const std::vector<chosen_algorithm>& chosen);
/// Nothing for what to_text() did not write.
std::optional<std::vector<chosen_algorithm>> parse_algorithms(std::string_view text);

/// Of algorithms that were chosen elsewhere, those that cannot be taken here.
struct left_algorithms {
  std::size_t all = 0;           ///< there were
  std::size_t refused = 0;       ///< by the library, for these products
  std::size_t too_large = 0;     ///< for the workspace
  std::size_t needed_bytes = 0;  ///< of workspace, by the largest of these

  left_algorithms& operator+=(const left_algorithms& other) noexcept;
};
/// Why bits will differ, in a sentence, with `workspace_bytes` in place of `needed_bytes`; empty where all are taken.
std::string why_left(const left_algorithms& left, std::size_t workspace_bytes);

}  // namespace penstock::train::cuda
