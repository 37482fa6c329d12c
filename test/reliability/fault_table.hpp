#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::test {

/// How one run under a fault ended.
struct outcome {
  std::string name;      ///< "pipeline::error (read)", "right rows", ...
  std::string sentence;  ///< of the exception; empty where there was none
  std::chrono::steady_clock::time_point at = std::chrono::steady_clock::now();  ///< when the caller had it

  bool says(std::string_view words) const { return sentence.find(words) != std::string::npos; }
};

/// Runs `work` and names how it ended: the exception's type and stage, or what `work` returned.
outcome outcome_of(const std::function<std::string()>& work);

/// Stage x fault x device -> how often each outcome came. Printed when the test program ends.
class fault_table {
 public:
  static fault_table& of_this_program();
  /// `on`: the device, or nothing where none takes part. `since`: when the fault took place.
  void note(const std::string& stage, const std::string& fault, const std::string& on, const outcome& how,
            std::chrono::steady_clock::time_point since);
  ~fault_table();
  fault_table(const fault_table&) = delete;
  fault_table& operator=(const fault_table&) = delete;

 private:
  fault_table() = default;
  struct row {
    std::string stage{}, fault{}, on{};
    std::map<std::string, int> outcomes{};
    std::chrono::duration<double, std::milli> longest{0};  ///< from a fault to its exception at the caller
  };
  std::vector<row> rows_;
};

/// Checks that an exception reached the caller in time: within a second of the fault.
void check_promptness(const outcome& how, std::chrono::steady_clock::time_point since);

/// One kind of fault at one stage, tried at many positions.
struct fault_case {
  std::string stage;
  std::string fault;
  std::string on{};  ///< the device; empty where none takes part
  /// Does the run with the fault at the n-th use, and says how it ended.
  std::function<outcome(std::int64_t n)> run;
  /// Whether the fault took place in the run just done.
  std::function<bool()> happened;
  /// When it did.
  std::function<std::chrono::steady_clock::time_point()> since;
  /// Whether it may end so.
  std::function<bool(const outcome&)> expected;
  /// Does what a user would do next, on a world that is healthy again; it must succeed.
  std::function<void()> afterwards = [] {};
  /// What goes on living keeps as many streams and events as its last run needed: they are compared by who ends it.
  bool keeps_objects = false;
  std::int64_t most = 200;  ///< positions: each of the first 16, then in growing steps
};

/// Tries the case at every position until the fault no longer takes place. Each is watched for hangs, must end as
/// expected, in time where it ends with an exception, and give back what it held.
void try_positions(const fault_case& what);

}  // namespace penstock::test
