#pragma once

#include "learner.hpp"

#include <penstock/pipeline/pipeline.hpp>
#include <penstock/train/trainer.hpp>

#include <cstdint>
#include <string>

namespace penstock::train {

/// The rows of a pass.
struct rows_of_pass {
  const pipeline::pipeline& data;
  const char* what;  ///< they are called
  std::uint64_t epoch;
};

/// The number of the first row at fault, which blocks every update from its step on; progress::no_row: there is none.
std::uint64_t first_fault(const progress& p);

/// Throws train::error that names the row at fault, where it is stored, and what is wrong with it.
void check_rows(const progress& p, const trainer_options& options, const learner& model, const rows_of_pass& rows);

/// Why the loss of an evaluation, in which faults of inputs and losses are no error, is not that of all rows; empty: it
/// is.
std::string left_out(const progress& p, const trainer_options& options, const rows_of_pass& rows);

/// Throws train::error where the `valid_rows` rows of a pass weigh nothing together, with what may be why: a run
/// in which every row is masked would end without a word, and with the weights that it began with.
void check_that_rows_count(std::uint64_t valid_rows, const metrics& counted, const trainer_options& options,
                           const rows_of_pass& rows);

/// Throws train::error where every step of an epoch was skipped (non_finite::skip): a run would end without a word, and
/// with the weights that it began with. Not where fp16's loss scale fell meanwhile, as it does at a run's start.
void check_that_steps_count(const progress& before, const progress& now, const trainer_options& options,
                            const rows_of_pass& rows);

/// Sees that a pass over rows that are not of the epoch under way neither meets faults of that epoch nor leaves its
/// own, which would block every update and be taken for rows of training. Both of its ends wait for the device.
class own_faults {
 public:
  explicit own_faults(learner& of) : of_(of) { forget(); }
  ~own_faults();
  own_faults(const own_faults&) = delete;
  own_faults& operator=(const own_faults&) = delete;

 private:
  void forget();

  learner& of_;
};

}  // namespace penstock::train
