#pragma once

#include "epoch_run.hpp"
#include "ground.hpp"
#include "trace_log.hpp"

#include <penstock/pipeline/batch.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace penstock::pipeline {

/// The consumer's side of a run: hands out batches in order, and takes their rows back. Batches keep it alive; what
/// is given back after the run has ended is marked, and the next run waits for it.
class batch_lease : public std::enable_shared_from_this<batch_lease> {
 public:
  batch_lease(std::shared_ptr<const ground> on, std::shared_ptr<epoch_run> in, statistics& count, trace_log* trace,
              gpu::stream_ref stream, std::function<void()> while_waiting);

  /// The next batch; an empty one at the end. Throws what ended the run, and pipeline::error where more batches are
  /// held than planned.
  batch next();
  /// The run is over: nothing is lent or given back any more. Returns the streams that used its batches. Throws
  /// std::bad_alloc; the run is not over then.
  std::vector<gpu::stream_ref> end();
  bool is_over() const;
  /// There will be no next run: giving back does nothing, and touches no stream.
  void outlive();
  std::size_t held() const;
  /// Failures of the run so far: the first reaches the consumer, the others are counted only.
  std::uint64_t failures() const;
  /// Marks in the streams of batches that were released after the run: the next run must wait for them.
  std::vector<gpu::event> take_late();
  /// Wall clock since the run began.
  double seconds() const;

  void used_on(std::uint64_t ticket, gpu::stream_ref other);
  void release(std::uint64_t ticket) noexcept;
  field_view view(std::uint64_t ticket, std::string_view name) const;
  std::vector<field_view> views(std::uint64_t ticket) const;
  std::vector<std::uint64_t> row_ids(std::uint64_t ticket) const;
  const std::string& damage_mask() const noexcept { return on_->plan.damage_mask; }
  std::vector<row_identity> row_identities(std::uint64_t ticket, std::string_view field) const;

 private:
  struct lent {
    bool released = false;
    std::vector<gpu::stream_ref> others;
  };
  field_view view_of(std::uint64_t ticket, std::size_t field) const;
  void check_that_it_may_lend() const;
  [[noreturn]] void refuse_what_is_gone() const;
  [[noreturn]] void refuse_too_many() const;
  std::function<void()> told_apart(std::function<void()> of_user);
  void wait_for_rows(const schedule::batch_place& place, std::uint64_t first_row);
  void mark_late(const std::vector<gpu::stream_ref>& others);
  void give_back_in_order();
  void poison(std::uint64_t end);
  void charge(clock::time_point start, std::uint64_t position);
  std::exception_ptr located(const schedule::batch_place& place, std::exception_ptr cause) const noexcept;

  std::shared_ptr<const ground> on_;
  std::shared_ptr<epoch_run> run_;
  statistics& count_;
  trace_log* const trace_;
  gpu::stream_ref stream_;
  const std::function<void()> while_waiting_;
  bool user_at_work_ = false;  ///< in while_waiting_, or it threw
  const clock::time_point began_;

  mutable std::mutex mutex_;  ///< batches may be released on other threads
  std::vector<lent> lent_;    ///< by ticket, in turn: batches [first_lent_, next_)
  std::uint64_t first_lent_ = 0;
  std::uint64_t next_ = 0;  ///< written by the thread that takes batches
  std::size_t held_ = 0;
  std::uint64_t released_ = 0;           ///< rows of the run that were given back
  std::vector<gpu::stream_ref> others_;  ///< streams beside stream_ whose work the next release must wait for
  std::vector<gpu::event> late_;
  bool over_ = false;
  bool last_ = false;  ///< the pipeline is gone, and with it its streams
};

}  // namespace penstock::pipeline
