#pragma once

#include <penstock/pipeline/pipeline.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace penstock::train {

/// Gives what fails in a pass over a pipeline's batches its place: see trainer. Nothing is computed until then.
class pass_errors {
 public:
  /// `stage`: error::place::stage. `next`: the batch that the pass begins with.
  pass_errors(const pipeline::pipeline& data, std::string stage, pipeline::run_position next)
      : data_(data), work_{.stage = std::move(stage), .at = pipeline::failed_work::when::before}, at_(next) {}

  /// Work on a batch begins, of a step where there are steps.
  void begin(std::uint64_t batch, std::optional<std::uint64_t> step = {}) {
    at_.batch = batch, step_ = step;
    work_.at = data_.device().is_host() ? pipeline::failed_work::when::at : pipeline::failed_work::when::at_or_before;
  }
  /// A model of the user's is at work: whatever it throws has a place.
  template <class F>
  void of_user(F&& work) {
    mine_ = false;
    work();
    mine_ = true;
  }
  /// A function of the caller's is at work: what it throws is nobody else's affair.
  template <class F>
  void of_caller(F&& work) {
    callers_ = true;
    work();
    callers_ = false;
  }
  /// Within a handler: throws what it caught again, with its place where it has none and should.
  [[noreturn]] void rethrow() const;

 private:
  const pipeline::pipeline& data_;
  pipeline::failed_work work_;
  pipeline::run_position at_;
  std::optional<std::uint64_t> step_{};
  bool mine_ = true;
  bool callers_ = false;
};

}  // namespace penstock::train
