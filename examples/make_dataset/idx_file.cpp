#include "idx_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>

namespace examples {
namespace {

constexpr std::uint64_t most_row_bytes = 1 << 16;  // a header may claim anything, and memory is taken for rows

}  // namespace

idx_file::idx_file(std::filesystem::path path) : path_(std::move(path)) {
  file_.reset(gzopen(path_.c_str(), "rb"));
  if (!file_) {
    throw std::runtime_error(
        fmt::format("{}: cannot be opened; install the package dataset-fashion-mnist, or name the folder of its files "
                    "with --source",
                    path_.string()));
  }
  std::array<std::byte, 4> word{};
  read(word);
  if (word[0] != std::byte{0} || word[1] != std::byte{0} || word[2] != std::byte{8}) {
    throw std::runtime_error(fmt::format("{}: is no IDX file of unsigned bytes", path_.string()));
  }
  shape_.resize(std::to_integer<std::size_t>(word[3]));
  std::uint64_t row_bytes = 1;
  for (auto& extent : shape_) {
    read(word);
    for (const std::byte b : word) extent = extent << 8 | std::to_integer<std::uint64_t>(b);
    if (&extent != &shape_.front()) row_bytes *= std::min(extent, most_row_bytes + 1);
    if (extent == 0 || row_bytes > most_row_bytes) shape_.clear();
    if (shape_.empty()) break;
  }
  if (shape_.empty())
    throw std::runtime_error(
        fmt::format("{}: its header tells no rows of at least one and at most {} values; install it anew",
                    path_.string(), most_row_bytes));
}

void idx_file::read(std::span<std::byte> out) {
  const int count = gzread(file_.get(), out.data(), static_cast<unsigned>(out.size()));
  if (count < 0 || static_cast<std::size_t>(count) != out.size()) {
    throw std::runtime_error(fmt::format("{}: ends too early or is damaged; install it anew", path_.string()));
  }
}

}  // namespace examples
