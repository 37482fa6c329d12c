#pragma once

#include "results.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace examples {

/// Where a resumed run stands: what its log says of later epochs and steps is written again.
struct log_position {
  std::uint64_t epochs = 0;     ///< whole ones, without one that is still to be evaluated
  std::uint64_t under_way = 0;  ///< the epoch to go on with, counted from 0
  std::uint64_t step = 0;       ///< steps that it has been through: also those that were skipped, or without any weight
};

/// Results of epochs, and of steps on request, one a line as they come: JSON or CSV, by the file's ending. When a call
/// returns, the system has what was written, and of an epoch it is on the disk. Throws io::error where that fails.
class training_log {
 public:
  /// Refuses a name that ends neither in .jsonl nor in .csv.
  static void check_name(const std::string& file);

  /// Whether nothing but what a run leaves that ends before its first epoch has is there: no file, none with lines, or
  /// lines of steps. Throws std::runtime_error where a file is there and cannot be read.
  static bool is_of_no_epoch(const std::string& file);

  /// Keeps no file where the name is empty. `resumed`: the lines up to there stay; `unchanged`: so does the file, of
  /// which these lines are read alone, for a run that adds none. Throws std::runtime_error where a resumed file is no
  /// log with the same columns, or cannot be read, and io::error where it cannot be written.
  training_log(std::string file, const result_form& form, bool tested, std::optional<log_position> resumed = {},
               bool unchanged = false);

  void add(const epoch_result& epoch);
  void add_steps(const penstock::train::epoch_progress& at);

  /// The lines of epochs, those that were kept included.
  const std::vector<nlohmann::json>& epochs() const noexcept { return epochs_; }

 private:
  std::string take_over(const log_position& resumed);
  nlohmann::json parse(const std::string& line) const;
  void keep(const nlohmann::json& values);
  void write(const nlohmann::json& values);
  std::string line_of(const nlohmann::json& values) const;
  std::string header() const;

  std::string file_;
  result_form form_;
  bool csv_;
  std::vector<std::string> columns_;
  std::vector<nlohmann::json> epochs_;
};

}  // namespace examples
