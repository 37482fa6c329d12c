#pragma once

#include <penstock/error.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace penstock::train {

/// Where training was when it failed. Empty or zero where it does not apply.
struct place {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::vector<std::uint64_t> rows{};  ///< row numbers in the source, of the rows at fault
  std::string file{};                 ///< a checkpoint's
  /// What the rows hold is at fault (inputs, labels, weights), and no loss or gradient that is not finite though they
  /// are, as those of a run that diverges: the model is as the last whole step made it.
  bool of_data = false;
};

/// Training failed: a loss or input that is not finite, a label outside its range, a checkpoint that does not fit.
class error : public penstock::error {
 public:
  explicit error(const std::string& sentence, place where = {}) : penstock::error(sentence), where_(std::move(where)) {}
  const place& where() const noexcept { return where_; }

 private:
  place where_;
};

}  // namespace penstock::train
