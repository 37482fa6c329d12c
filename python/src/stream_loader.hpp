#pragma once

#include <penstock/pipeline/description.hpp>

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "at_work.hpp"
#include "batch_handle.hpp"
#include "requests.hpp"

namespace penstock::python {

/// A built pipeline with the run in progress. Thread-safe: calls take turns, and wait without the GIL; what a signal
/// handler raises ends their waits. Refuses to work in a forked child, where its destructor leaves all as it is.
class stream_loader {
 public:
  /// `kept`: Python's part of the request's criteria. Throws as at_work.
  stream_loader(loader_request request, kept_criteria& kept);
  ~stream_loader();
  stream_loader(const stream_loader&) = delete;
  stream_loader& operator=(const stream_loader&) = delete;

  /// Begins at a batch of an epoch; so many epochs, without a number all, follow each other without a gap. Where a
  /// signal ends the wait for the run before, that ends all the same.
  void begin(std::uint64_t epoch, std::uint64_t batch, std::optional<std::uintptr_t> stream,
             std::optional<std::uint64_t> epochs);
  /// Where a run stands whose next batch is this one; the other way round.
  std::string state(std::uint64_t epoch, std::uint64_t batch) const;
  std::pair<std::uint64_t, std::uint64_t> resume_at(const std::string& state) const;
  /// The next batch, where it is this one, by its epoch's number in the run; none where it is another, which is passed
  /// over, or the run has ended. `asked`: the epoch's number as the loop calls it.
  std::optional<batch_handle> next(std::uint64_t epoch, std::uint64_t index, std::uint64_t asked);
  /// No loop asks for batches until the next one does: the report's clocks stand still. Waits for nothing; does nothing
  /// where a call is in progress.
  void pause() noexcept;
  /// Stops the run and frees all memory that no array holds. Can be called twice. What plan() and report() say stays.
  /// Where a call waits on this thread (this is in a signal handler then) it throws, and changes nothing. Where a
  /// signal ends the wait, closing goes on.
  void close();

  /// Throws in a forked child.
  void refuse_child() const;
  /// Throws in a forked child, and in a function of map() that this loader calls: what waits for a batch, or for its
  /// functions, would wait for itself there. Holds the GIL.
  void refuse_caller() const;
  /// What `look` gives of the pipeline, for what does not change; it waits for nothing, not even for a call in
  /// progress, and does nothing with Python. Throws where there is no pipeline any more.
  template <class Look>
  auto look_at(Look look) const {
    refuse_child();
    const std::lock_guard there(there_);
    return look(built());
  }
  const gpu::budget& budget() const noexcept { return budget_; }
  /// What was tried before the pipeline was built; nothing where nobody asked for it.
  const std::optional<pipeline::calibration>& measured() const noexcept { return measured_; }
  pipeline::pipeline_plan plan() const;
  pipeline::pipeline_report report(const pipeline::machine_limits& limits) const;
  /// As pipeline::write_trace().
  std::uint64_t write_trace(const std::string& file) const;

  /// For the garbage collector, with the GIL; wait for nothing. A loader that was cleared is as one that was closed.
  int traverse(visitproc visit, void* arg) const noexcept { return maps_.traverse(visit, arg); }
  void clear() noexcept;

 private:
  /// One call's turn; waits for others'. Throws as refuse_waiting().
  class turn {
   public:
    explicit turn(const stream_loader& of);
    ~turn();
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;

   private:
    const stream_loader& of_;
  };

  const pipeline::pipeline& built() const;
  /// Throws where a call waits on this thread: a signal handler that runs in its wait.
  void refuse_waiting() const;
  /// Does work that may wait for functions of map(), or for reads, on a thread of its own, which keeps this loader, and
  /// looks at signals meanwhile. What a handler raises ends the wait, not the work. Holds the GIL; the work does not.
  void do_apart(std::function<void()> work);
  void begin_run(pipeline::run_position at, std::uint64_t epochs, std::optional<std::uintptr_t> stream);
  /// Without the GIL.
  void end();

  /// For a destructor that runs in a function of this loader's: the garbage collector may be called by any thread.
  void close_on_main_thread() noexcept;

  const pid_t process_;
  std::unique_ptr<at_work> at_work_;  ///< as long as there is a pipeline, which it must outlive
  gpu::budget budget_;
  std::stop_source stop_;
  mutable std::timed_mutex mutex_;  ///< held by a call in progress
  mutable std::mutex there_;  ///< pipeline_ stays while it is held; taken with or without the GIL, and never for long
  mutable std::atomic<std::thread::id> whose_turn_{};
  std::atomic<bool> is_cleared_ = false;
  std::optional<pipeline::calibration> measured_;
  row_maps maps_;  ///< must outlive pipeline_
  std::unique_ptr<pipeline::pipeline> pipeline_;
  std::optional<pipeline::pipeline_plan> last_plan_;      ///< of a pipeline that was closed
  std::optional<pipeline::pipeline_report> last_report_;  ///< likewise
  std::unique_ptr<pipeline::epoch_range> range_;          ///< must not outlive pipeline_
};

void bind_loader(nanobind::module_& m);

}  // namespace penstock::python
