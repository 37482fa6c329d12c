#pragma once

#include "block_stages.hpp"
#include "epoch_run.hpp"
#include "flow.hpp"
#include "ground.hpp"
#include "ring_filler.hpp"
#include "statistics.hpp"
#include "stream_marks.hpp"
#include "trace_log.hpp"

#include <penstock/gpu/gather.hpp>
#include <penstock/gpu/slot_ring.hpp>
#include <penstock/gpu/stream.hpp>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock::pipeline {

/// The one thread that touches the device: lets blocks into the flow while there are slots, issues their copies in
/// order, gathers rows into the rings, publishes them, and gives slots back. It waits for nothing but a free slot, a
/// block, or free rows, and is not one of the flow's workers.
class conductor final : public ring_filler {
 public:
  /// `trace`, where there is one, is told what blocks go through.
  conductor(const ground& on, statistics& count, trace_log* trace);
  /// Fences copies in flight, too.
  ~conductor() override;

  void start(std::shared_ptr<epoch_run> next) override;
  void stop() override;
  void wait_for_users(std::span<const gpu::stream_ref> consumers) override;
  void wait_for(const gpu::event& before) override {
    before.hold(copy_);
    before.hold(work_);
  }
  gpu::stream_ref consumer_stream() const noexcept override { return consumer_; }

 private:
  void loop();
  void conduct();
  handover::news wait(const handover::news& before, bool watching);
  obstacle held_up_by(const handover::news& now) const;
  bool copying() const { return !host_ && slots_.given_back() < in_copy_; }
  bool issue(std::uint64_t released);
  bool may_let_in(std::uint64_t released);
  void waited(wait_sum& sum, const char* name, clock::time_point now);
  bool copy_blocks(std::uint64_t came_out);
  bool emit(std::uint64_t released);
  bool is_too_early(const piece& p);
  bool held_back() const { return held_back_since_ != clock::time_point{}; }
  std::uint64_t landing_end(std::uint64_t block) const;
  std::uint64_t whole_piece_end() const;
  std::uint64_t wanted_room(std::uint64_t released) const;
  bool reap();
  clock::time_point copy_images(std::uint64_t first, std::uint64_t blocks, clock::time_point start);
  bool give_back_slots(std::uint64_t end, clock::time_point now);
  void copies_end(std::uint64_t end);
  bool is_worth_issuing(std::uint64_t came_out) const;
  void emit_piece(const piece& p);
  clock::time_point copy_straight(const piece& p, clock::time_point start);
  clock::time_point gather(const piece& p, clock::time_point start);
  clock::time_point transform(const piece& p, clock::time_point start);
  void pad(const piece& p);
  void use_up(const piece& p, clock::time_point now);
  void fence();
  std::exception_ptr located(const std::exception_ptr& cause) const noexcept;
  void came_out(std::uint64_t block);
  void note(trace_log::track where, const char* name, clock::time_point begin, clock::time_point end,
            std::uint64_t block, std::uint64_t rows, std::uint64_t epoch) const;

  /// What the conductor was about when something failed.
  struct task_at_hand {
    const char* stage = "copy";
    bool is_block = true;
    std::uint64_t block = 0;
    piece rows;
  };

  const ground& on_;
  statistics& count_;
  trace_log* const trace_;
  block_stages stages_;
  const bool host_;
  const bool watchful_;
  const std::chrono::microseconds poll_;
  bool has_straight_ = false;
  bool has_device_work_ = false;  ///< gathers or transforms: rows are ready in the order of the work stream

  gpu::stream copy_, work_, consumer_;
  gpu::gatherer gather_rows_;             ///< on work_
  std::vector<gpu::stream_ref> writers_;  ///< the streams that write to the rings
  stream_marks copied_;                   ///< blocks whose slots are free once copy_ has come so far; a thread asks
  stream_marks images_filled_;            ///< blocks whose images are there; work_ waits
  stream_marks images_used_;              ///< blocks whose images may be overwritten; copy_ waits
  stream_marks straight_filled_;          ///< rows that went past the images; work_ waits

  // Of the run in progress; touched by the conductor's thread alone.
  gpu::slot_ring slots_, images_;
  std::uint64_t issued_ = 0, arrived_ = 0, emitted_ = 0;
  std::uint64_t opened_ = 0;       ///< blocks that are, or were, first in the line before the flow
  std::uint64_t has_slot_ = 0;     ///< blocks that have, or had, a slot
  clock::time_point waits_since_;  ///< the block that is first in that line, for what it lacks
  task_at_hand doing_;
  std::uint64_t in_copy_ = 0;          ///< blocks whose last copy was issued
  std::uint64_t blocks_put_out_ = 0;   ///< blocks whose rows are all out, or on their way
  clock::time_point asked_;            ///< when the device was last asked how far it is
  clock::time_point asked_place_;      ///< when it was last asked whether the next piece's place is free
  clock::time_point held_back_since_;  ///< that piece, until its place is free; none is: {}

  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<epoch_run> run_, current_;
  std::shared_ptr<epoch_run> last_;  ///< until later work waits for its users; touched by who starts runs
  bool quit_ = false;
  std::unique_ptr<flow> flow_;
  std::thread thread_;
};

}  // namespace penstock::pipeline
