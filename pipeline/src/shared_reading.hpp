#pragma once

#include "block_stages.hpp"
#include "ring_filler.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock::pipeline {

/// Fills the rings where rows need nothing but reading: they land where they are consumed. Threads of its own read
/// blocks, and so does the consumer where it would otherwise wait. Whoever has read a block puts out what has come in,
/// and takes the next one: no block passes through another thread.
///
/// While reads are short, one reader's place is the consumer's, who has a processor already. While they are long, as
/// from a slow disk or with decoding, all places are its threads': a consumer that reads cannot take the batch that has
/// come in meanwhile.
class shared_reading final : public ring_filler, public consumer_help {
 public:
  /// `trace`, where there is one, is told what blocks go through. Throws pipeline::error where the system gives no
  /// thread; where it gives fewer than wanted, these do.
  shared_reading(const ground& on, statistics& count, trace_log* trace);
  ~shared_reading() override;

  void start(std::shared_ptr<epoch_run> next) override;
  void stop() override;
  // Nothing is left to wait for: the host's streams are done when a call returns.
  void wait_for_users(std::span<const gpu::stream_ref>) override {}
  void wait_for(const gpu::event&) override {}
  gpu::stream_ref consumer_stream() const noexcept override { return consumer_; }

  outcome read_block(std::uint64_t end) override;
  void rows_are_free() override;

 private:
  enum class reader : std::uint8_t { own, consumer };
  void loop();
  void read_next(std::unique_lock<std::mutex>& lock);
  bool may_read(reader who) const;
  bool reads_are_short() const;
  bool is_well_supplied() const;
  void advance();
  void let_in();
  void put_out();
  void pad(const piece& p);
  void came_in(std::uint64_t block);
  void adapt(clock::duration read_time);
  void make_threads(std::size_t readers);
  void end_run_if_done();

  const ground& on_;
  statistics& count_;
  trace_log* const trace_;
  block_stages stages_;
  gpu::stream padding_, consumer_;

  std::mutex mutex_;
  std::condition_variable to_read_;  ///< its threads sleep here
  std::condition_variable idle_;     ///< nobody reads any more
  std::shared_ptr<epoch_run> run_;
  std::uint64_t opened_ = 0;       ///< blocks that are, or were, first in the line
  std::uint64_t let_in_ = 0;       ///< blocks that have, or had, room
  std::uint64_t taken_ = 0;        ///< by readers
  std::uint64_t arrived_ = 0;      ///< blocks before it are all there
  std::deque<bool> there_;         ///< blocks from arrived_ on that were taken: whether they are
  std::uint64_t emitted_ = 0;      ///< rows before it are published
  std::uint64_t wanted_ = 0;       ///< the consumer waits, or waited, for rows before it
  clock::time_point waits_since_;  ///< the block that is first in the line, for room
  std::size_t places_;             ///< blocks that may be read at once
  std::size_t at_work_ = 0, own_at_work_ = 0, asleep_ = 0;
  std::uint8_t short_reads_ = 0;  ///< of the last eight blocks, a bit each
  bool quit_ = false;
  std::vector<std::thread> own_;
};

}  // namespace penstock::pipeline
