#include "claimed_texts.hpp"

#include "failure.hpp"

#include <fmt/format.h>

namespace penstock::io {
namespace {

constexpr std::uint64_t always = std::uint64_t{1} << 24;  // 64 MiB of codes
// A text takes a reference of 16 bytes, and deflate makes at most 1032 bytes of one.
constexpr std::uint64_t texts_of_a_byte = 1032 / 16;

}  // namespace

void check_claimed_texts(std::uint64_t texts, std::uint64_t bytes) {
  if (texts > always && texts / texts_of_a_byte > bytes)
    throw failure(
        fmt::format("it claims {} texts, of which files of {} bytes hold few: they cannot be read as labels; store "
                    "numbers",
                    texts, bytes));
}

}  // namespace penstock::io
