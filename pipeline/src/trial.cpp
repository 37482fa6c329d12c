#include "trial.hpp"

#include "pipeline_impl.hpp"

#include <algorithm>

namespace penstock::pipeline {
namespace {

constexpr std::uint64_t epochs_enough = std::uint64_t{1} << 16;  // of a file that is read again and again in a slice

struct time_is_over {};

/// Gives the source its readers back when whoever used them is gone.
class readers_lent {
 public:
  readers_lent(opened::impl& source, std::shared_ptr<ground> to) : source_(source), to_(std::move(to)) {}
  ~readers_lent() { source_.readers = std::move(to_->readers); }
  readers_lent(const readers_lent&) = delete;
  readers_lent& operator=(const readers_lent&) = delete;

 private:
  opened::impl& source_;
  std::shared_ptr<ground> to_;
};

/// Rows by the time at which they came.
class arrivals {
 public:
  /// Counts after `first_rows`, or after `slice` if that is sooner.
  arrivals(clock::duration slice, std::uint64_t first_rows)
      : slice_(slice), first_rows_(first_rows), began_(clock::now()) {}

  /// True where it was long enough.
  bool add(std::uint64_t rows) {
    last_ = clock::now();
    if (counting_) {
      rows_ += rows;
      return last_ - since_ >= slice_;
    }
    first_rows_ -= std::min(first_rows_, rows);
    counting_ = first_rows_ == 0 || last_ - began_ >= slice_;
    since_ = last_;
    return false;
  }
  clock::time_point give_up() const { return began_ + 3 * slice_; }
  std::optional<double> rows_per_second() const {
    if (rows_ == 0 || last_ == since_) return std::nullopt;
    return static_cast<double>(rows_) / to_seconds(last_ - since_);
  }

 private:
  const clock::duration slice_;
  std::uint64_t first_rows_, rows_ = 0;
  const clock::time_point began_;
  clock::time_point since_, last_;
  bool counting_ = false;
};

void stream(pipeline& from, arrivals& count, run_position& at) try {
  const consume_options options{.first_batch = at.batch, .while_waiting = [&] {
                                  if (clock::now() > count.give_up()) throw time_is_over();
                                }};
  epoch_range range = from.epochs(at.epoch, epochs_enough, options);
  for (batch next = range.next(); next; next = range.next()) {
    const bool ends = next.index() + 1 >= from.batches_per_epoch();
    at = ends ? run_position{next.epoch() + 1, 0} : run_position{next.epoch(), next.index() + 1};
    next.release();
    if (count.add(next.valid_rows()) || clock::now() > count.give_up()) return;
  }
} catch (const time_is_over&) {
}

}  // namespace

std::optional<double> stream_for(clock::duration slice, opened::impl& source, const pipeline_plan& plan,
                                 const transport_options& wish, std::shared_ptr<gpu::memory> memory, run_position& at) {
  const std::shared_ptr<ground> on = source.stand_on(plan, std::move(memory), wish);
  const readers_lent until_the_end(source, on);
  on->tries_readers = false;
  pipeline streaming(std::make_unique<pipeline::impl>(on));
  arrivals count(slice, plan.ring_rows + std::max(plan.slots, plan.threads) * plan.block_rows);
  stream(streaming, count, at);
  const std::optional<double> rate = count.rows_per_second();
  if (!rate) return std::nullopt;
  return *rate * static_cast<double>(source.shape.row_bytes);
}

}  // namespace penstock::pipeline
