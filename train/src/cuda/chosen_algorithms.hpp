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

}  // namespace penstock::train::cuda
