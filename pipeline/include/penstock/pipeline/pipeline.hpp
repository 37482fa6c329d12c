#pragma once

#include <penstock/fault.hpp>
#include <penstock/gpu/ledger.hpp>
#include <penstock/gpu/memory.hpp>
#include <penstock/pipeline/batch.hpp>
#include <penstock/pipeline/error.hpp>
#include <penstock/pipeline/order.hpp>
#include <penstock/pipeline/plan.hpp>
#include <penstock/pipeline/report.hpp>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::pipeline {

struct consume_options {
  /// The stream that uses the batches; absent: a stream of the pipeline's own (batch.stream()). It must live until
  /// another run has begun, or the pipeline is gone: the end of this run marks it, after all batches were given back.
  std::optional<gpu::stream_ref> stream{};
  /// Ends the run: pull and push throw pipeline::stopped at the next batch.
  std::stop_token stop{};
  /// Starts the first epoch at this batch, as if the ones before had been consumed; at batches_per_epoch(), after it.
  std::uint64_t first_batch = 0;
  /// Called about ten times a second on the thread that waits for a batch, so that a program can look at signals. What
  /// it throws ends the wait and reaches the caller; the run goes on, and the next call waits for the same batch.
  std::function<void()> while_waiting{};
};

/// Where a row of a field is stored.
struct row_place {
  std::string file{};
  std::string dataset{};
  std::uint64_t row = 0;      ///< in that dataset
  std::uint64_t segment = 0;  ///< number of that dataset among the field's segments
};

/// A batch of a run of epochs, by number.
struct run_position {
  std::uint64_t epoch = 0;
  std::uint64_t batch = 0;  ///< in its epoch
  friend bool operator==(const run_position&, const run_position&) = default;
};

class epoch_range;

/// A built pipeline: all its memory is allocated. One run (a range of epochs) at a time; the object may be destroyed in
/// any state, which stops the run and waits for copies in flight. Not thread-safe, except request_stop() through the
/// token.
class pipeline {
 public:
  pipeline(pipeline&&) noexcept;
  pipeline& operator=(pipeline&&) noexcept;
  ~pipeline();

  /// Batches of the epochs [first, first + count), one epoch after another without a gap. Starting a run ends the one
  /// before. Errors reach the loop as exceptions; the run is over then, and the next one starts afresh.
  ///
  /// A run that cannot begin leaves the one before alone: throws pipeline::error while a batch of that one is held, and
  /// std::invalid_argument for a stream of another device or first_batch beyond the epoch (std::bad_alloc may end it).
  epoch_range epochs(std::uint64_t first, std::uint64_t count, consume_options options = {});
  /// The same batches, given to `consumer` on the caller's thread. What it throws ends the run and reaches the caller
  /// as is.
  void run(std::uint64_t first, std::uint64_t count, const std::function<void(batch&)>& consumer,
           consume_options options = {});

  std::uint64_t rows() const noexcept;
  std::uint64_t batches_per_epoch() const noexcept;
  gpu::device device() const noexcept;
  const pipeline_plan& plan() const noexcept;
  const order& row_order() const noexcept;
  /// Where row `row` of the source is stored; nothing for a field that a transform makes.
  std::optional<row_place> place_of(std::string_view field, std::uint64_t row) const;
  /// What the codes of a field of texts of variable length stand for: the texts of all its datasets, sorted, whichever
  /// rows take part; code n is text n. Another source has another list, and so other codes for the same texts. Empty
  /// for other types, and for a field that the source does not have. Of what is read: a transform may put out others.
  const std::vector<std::string>& class_names(std::string_view field) const noexcept;
  /// For a consumer whose own work on a batch failed: an error as the stages' are, with the rows of batch `at`, file
  /// and dataset of the first of them, and `cause`, which is kept; rows and place are computed now. At
  /// batches_per_epoch() it names the end of the epoch. Throws std::invalid_argument for a batch beyond that.
  error failure(run_position at, std::exception_ptr cause, const failed_work& work = {}) const;
  /// Where a run stands whose next batch is `next`, with all that decides which rows follow (source, order, batches): a
  /// few hundred bytes of JSON, to be kept with a checkpoint.
  std::string state(run_position next) const;
  /// The same for the run that has just consumed `last`.
  std::string state_after(const batch& last) const;
  /// Where to go on: epochs(at.epoch, count, {.first_batch = at.batch}) gives the rows that would have followed.
  /// Budgets, threads, devices and the files' folder may differ. Throws std::invalid_argument that names both sides
  /// where the state is of another source, order or batch size.
  run_position resume_at(std::string_view state) const;
  /// What the pipeline did since it was built, beside what the machine could do, as far as that is known.
  pipeline_report report(const machine_limits& limits = {}) const;
  /// For a consumer that leaves its run alone for a while, between epochs, say. What passes from now until the next
  /// batch is asked for, or the run is ended, is no time of the report's, and a report until then tells what was until
  /// now. Reading ahead goes on, and comes to the account with the next batch. Does nothing where there is no run.
  void pause();
  /// Writes what was traced since the pipeline was built as JSON that Perfetto (ui.perfetto.dev) and chrome://tracing
  /// open: a track for each thread; spans of blocks in reading, transforms, copies, gathers, of blocks that wait to be
  /// let in, and of the consumer's waits. Returns how many spans had no room. Throws std::invalid_argument where
  /// nothing is traced (traced()), pipeline::error where the file cannot be written.
  std::uint64_t write_trace(const std::filesystem::path& file) const;

  struct impl;
  explicit pipeline(std::unique_ptr<impl>) noexcept;

 private:
  std::unique_ptr<impl> impl_;
};

/// A range of batches for one pass: for (auto& batch : pipeline.epochs(0, 10)). Leaving the loop early costs no more
/// than the blocks in flight. Once another run has begun, or the pipeline is gone, next() throws pipeline::error.
class epoch_range {
 public:
  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = batch;
    using difference_type = std::ptrdiff_t;
    using reference = batch&;
    batch& operator*() const noexcept { return *current_; }
    iterator& operator++();
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& it, std::default_sentinel_t) noexcept { return !it.range_; }

   private:
    friend class epoch_range;
    epoch_range* range_ = nullptr;
    batch* current_ = nullptr;
  };

  epoch_range(epoch_range&&) noexcept;
  epoch_range& operator=(epoch_range&&) noexcept;
  ~epoch_range();

  iterator begin();
  std::default_sentinel_t end() const noexcept { return {}; }
  /// The next batch, or an empty one at the end. What begin() and ++ call; the batch handed out before is not released.
  batch next();

  struct impl;
  explicit epoch_range(std::unique_ptr<impl>) noexcept;

 private:
  std::unique_ptr<impl> impl_;
  batch current_;
};

}  // namespace penstock::pipeline
