#pragma once

#include <penstock/train/trainer.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace examples {

/// A line that is drawn over itself while an epoch runs, where the output is a terminal; nothing elsewhere.
class progress_line {
 public:
  progress_line(std::uint64_t epochs, std::uint64_t rows, std::size_t row_bytes);
  /// Before an epoch goes on with its batch `first_batch`: from there on, rows and seconds are counted.
  void begin_epoch(std::uint64_t first_batch) noexcept { first_batch_ = first_batch; }
  /// `memory` is asked for its words where the line is drawn.
  void show(const penstock::train::epoch_progress& at, const std::function<std::string()>& memory);
  void clear();

 private:
  bool terminal_;
  std::uint64_t epochs_;
  std::uint64_t rows_;
  std::size_t row_bytes_;
  std::uint64_t first_batch_ = 0;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace examples
