#include "block_stages.hpp"

#include <penstock/gpu/range.hpp>

namespace penstock::pipeline {

/// Nobody is left to catch what comes out of it: it asks for no memory outside `work`.
template <class F>
void block_stages::work(epoch_run& run, std::uint64_t block, std::size_t stage, F work) const {
  stage_account& account = count_.flow[stage];
  const char* const name = stage == 0 ? "read" : on_.fields.host_transforms[stage - 1].name.c_str();
  const block_place place = run.plan.block(block);
  const auto start = clock::now();
  account.start(start);
  run.times.set(block, way::began(stage), start);
  bool done = false;
  if (!run.between.ended()) try {
      const gpu::range profiled(name);
      work();
      done = !run.between.ended();  // else it may have left off
    } catch (const error&) {
      run.between.fail(std::current_exception());
    } catch (...) {  // before the work itself: memory for its lists of rows
      run.between.fail(stage_error_or_cause(on_, name, place, counted::as_read, std::current_exception()));
    }
  const auto end = clock::now();
  account.end(end, done ? reader_.bytes_of(place) : 0, done ? 1 : 0);
  run.times.set(block, way::ended(stage), end);
  if (stage + 1 < count_.flow.size()) count_.flow[stage + 1].arrive(end);
  if (done && trace_) trace_->add(trace_log::track::reader, {name, start, end, block, place.rows, place.epoch});
}

void block_stages::read(epoch_run& run, std::uint64_t block) const {
  work(run, block, 0, [&] { reader_.read(run, block); });
}

void block_stages::transform(epoch_run& run, std::uint64_t block, std::size_t transform) const {
  work(run, block, transform + 1, [&] { reader_.apply(run.plan, block, transform); });
}

std::size_t block_stages::readers_after(bool waiting) {
  const auto now = clock::now();
  const std::size_t readers = count_.readers.block_read(now, waiting);
  if (readers != readers_) count_.flow[0].set_workers(now, readers_ = readers);
  return readers;
}

}  // namespace penstock::pipeline
