#include "checksum.hpp"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_reduce.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "checksum_cuda.hpp"

namespace examples {
namespace {

std::uint64_t sum_words(const std::byte* data, std::size_t words) noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint32_t word = 0;
    std::memcpy(&word, data + i * sizeof(word), sizeof(word));
    sum += word;
  }
  return sum;
}

std::uint64_t sum_row(const std::byte* row, std::size_t row_bytes) noexcept {
  const std::size_t words = row_bytes / 4;
  std::uint32_t last = 0;
  std::memcpy(&last, row + words * 4, row_bytes % 4);
  return sum_words(row, words) + last;
}

std::uint64_t sum_rows(const std::byte* data, std::size_t rows, std::size_t row_bytes) noexcept {
  if (row_bytes % 4 == 0) return sum_words(data, rows * (row_bytes / 4));
  std::uint64_t sum = 0;
  for (std::size_t row = 0; row < rows; ++row) sum += sum_row(data + row * row_bytes, row_bytes);
  return sum;
}

std::uint64_t checksum_on_host(const row_bytes_view& all) {
  const std::size_t grain =
      std::max<std::size_t>(1, (std::size_t{256} << 10) / std::max<std::size_t>(1, all.row_bytes));
  return oneapi::tbb::parallel_reduce(
      oneapi::tbb::blocked_range<std::size_t>(0, all.rows, grain), std::uint64_t{0},
      [&](const auto& range, std::uint64_t sum) {
        return sum + sum_rows(all.data + range.begin() * all.row_bytes, range.size(), all.row_bytes);
      },
      std::plus{});
}

}  // namespace

std::uint64_t checksum_here(const row_bytes_view& rows) noexcept {
  return sum_rows(rows.data, rows.rows, rows.row_bytes);
}

void add_checksum(penstock::gpu::stream_ref stream, const row_bytes_view& rows, std::uint64_t* total) {
  if (stream.device().is_host())
    *total += checksum_on_host(rows);
  else
    add_checksum_on_cuda(stream, rows, total);
}

}  // namespace examples
