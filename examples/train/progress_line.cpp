#include "progress_line.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace examples {
namespace {

constexpr std::size_t bar_width = 24;
constexpr auto least_pause = std::chrono::milliseconds(100);

}  // namespace

progress_line::progress_line(std::uint64_t epochs, std::uint64_t rows, std::size_t row_bytes)
    : terminal_(::isatty(STDOUT_FILENO) == 1), epochs_(epochs), rows_(rows), row_bytes_(row_bytes) {}

void progress_line::show(const penstock::train::epoch_progress& at, const std::function<std::string()>& memory) {
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ || now - last_ < least_pause || at.batches <= first_batch_) return;
  last_ = now;
  const double done = static_cast<double>(at.batches) / static_cast<double>(at.batches_per_epoch);
  const double here = static_cast<double>(at.batches - first_batch_) / static_cast<double>(at.batches_per_epoch);
  const double rows_per_second = here * static_cast<double>(rows_) / at.seconds;
  const double left = (static_cast<double>(epochs_ - at.epoch) - done) * static_cast<double>(rows_) / rows_per_second;
  const auto filled = std::min(bar_width, static_cast<std::size_t>(done * static_cast<double>(bar_width)));
  fmt::print("\repoch {}/{} [{}{}] {:.0f} rows/s, {:.2f} GB/s, {}{}, {:.0f} s left\033[K", at.epoch + 1, epochs_,
             std::string(filled, '#'), std::string(bar_width - filled, ' '), rows_per_second,
             rows_per_second * static_cast<double>(row_bytes_) / 1e9,
             at.training.rows > 0 ? fmt::format("loss {:.4f}, ", at.training.loss()) : "", memory(), left);
  std::fflush(stdout);
}

void progress_line::clear() {
  if (!terminal_) return;
  fmt::print("\r\033[K");
  std::fflush(stdout);
}

}  // namespace examples
