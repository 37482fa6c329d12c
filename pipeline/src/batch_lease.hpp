#pragma once

#include "epoch_run.hpp"
#include "ground.hpp"
#include "lent_batches.hpp"
#include "ring_filler.hpp"
#include "trace_log.hpp"

#include <penstock/pipeline/batch.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace penstock::pipeline {

/// The consumer's side of a run: hands out batches in order, and takes their rows back. Batches keep it alive; what
/// is given back after the run has ended is marked, and the next run waits for it. A batch takes no lock, unless
/// another stream used it: rows return in steps.
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
  /// Lets `hands` wait for marks in the streams of batches, as the next run must: of what was released after the run,
  /// and of what other streams had used when it ended. Throws gpu::error; those that are left are the next call's.
  void let_wait_for_late(ring_filler& hands);
  /// Wall clock since the run began, until the consumer was told of its end.
  double seconds() const;
  /// The consumer was told of the run's end: by an empty batch, or by what ended it.
  bool has_ended() const noexcept { return ended_.has_value(); }

  void used_on(std::uint64_t ticket, gpu::stream_ref other);
  void release(std::uint64_t ticket) noexcept;
  field_view view(std::uint64_t ticket, std::string_view name) const;
  std::vector<field_view> views(std::uint64_t ticket) const;
  std::vector<std::uint64_t> row_ids(std::uint64_t ticket) const;
  const std::string& damage_mask() const noexcept { return on_->plan.damage_mask; }
  std::vector<row_identity> row_identities(std::uint64_t ticket, std::string_view field) const;

 private:
  /// A stream beside stream_ that uses a batch.
  struct user {
    std::uint64_t ticket = 0;
    gpu::stream_ref stream;
  };
  /// How far such a stream was when the batch was released.
  struct user_mark {
    std::uint64_t ticket = 0;
    gpu::event* event = nullptr;
  };
  field_view view_of(std::uint64_t ticket, std::size_t field) const;
  void check_that_it_may_lend() const;
  [[noreturn]] void refuse_what_is_gone() const;
  [[noreturn]] void refuse_too_many() const;
  std::function<void()> told_apart(std::function<void()> of_user);
  void wait_for_rows(const schedule::batch_place& place, std::uint64_t first_row);
  void fail_at(std::uint64_t ticket) noexcept;
  void mark_users(std::uint64_t ticket);
  void passed(std::uint64_t ticket);
  void give_back(std::uint64_t batches, bool ends_step);
  void poison(std::span<gpu::event* const> users, std::uint64_t end);
  void charge(clock::time_point start, std::uint64_t position);
  void note_end();
  std::exception_ptr located(const schedule::batch_place& place, std::exception_ptr cause) const noexcept;

  std::shared_ptr<const ground> on_;
  std::shared_ptr<epoch_run> run_;
  statistics& count_;
  trace_log* const trace_;
  gpu::stream_ref stream_;
  const std::function<void()> while_waiting_;
  bool user_at_work_ = false;  ///< in while_waiting_, or it threw
  const clock::time_point began_;
  std::optional<clock::time_point> ended_;  ///< as has_ended(); the thread that takes batches

  lent_batches lent_;                  ///< by ticket: batches may be released on other threads
  std::atomic<bool> over_{false};      ///< set under the lock
  std::atomic<std::size_t> users_{0};  ///< entries of using_ and used_; changed under the lock

  mutable std::mutex mutex_;
  std::vector<user> using_;      ///< of batches that are held
  std::vector<user_mark> used_;  ///< of batches that are released, whose rows have not returned
  std::uint64_t returned_ = 0;   ///< rows of the run
  std::vector<const gpu::event*> late_;
  bool last_ = false;  ///< the pipeline is gone, and with it its streams
};

}  // namespace penstock::pipeline
