// What the report's account costs, with tracing off: all that is counted and stamped on a block's way from its slot to
// the rings, in the order in which reader, conductor and consumer do it, on one thread.
#include "reader_tuner.hpp"
#include "stage_account.hpp"
#include "stamps.hpp"
#include "statistics.hpp"

#include <benchmark/benchmark.h>

#include <vector>

namespace pp = penstock::pipeline;

namespace {

struct books {
  pp::stage_account slots, read, hands;
  pp::stamps times{64, pp::way{}};
  pp::pauses paused;
  pp::wait_sum no_slot{paused};
  pp::work_sum copy, gather;
  pp::reader_tuner readers{12, 32};

  books() {
    const auto now = pp::clock::now();
    for (pp::stage_account* stage : {&slots, &read, &hands}) stage->begin_run(now);
    readers.begin_run();
  }
};

/// A block is let in.
void let_in(books& b, std::uint64_t block) {
  const auto now = pp::clock::now();
  b.times.open(block, now);
  b.no_slot.begin(now);
  b.slots.arrive(now);
  b.times.set(block, pp::way::has_slot, now);
  b.no_slot.end(now + std::chrono::nanoseconds(1));
  b.times.set(block, pp::way::let_in, now);
  b.read.arrive(now);
}

/// A reader reads it, and it comes out.
void read(books& b, std::uint64_t block) {
  const auto start = pp::clock::now();
  b.read.start(start);
  b.times.set(block, pp::way::began(0), start);
  const auto end = pp::clock::now();
  b.read.end(end, 1 << 21);
  b.times.set(block, pp::way::ended(0), end);
  b.readers.block_read(pp::clock::now(), true);
  const auto out = pp::clock::now();
  b.times.set(block, b.times.of().came_out(), out);
  b.hands.arrive(out);
}

/// The conductor copies it, gathers its rows and gives its slot back.
void put_out(books& b, std::uint64_t block) {
  auto now = pp::clock::now();
  b.copy.add(b.paused.counted(now, now + std::chrono::nanoseconds(1)), 1 << 21, 1);
  b.times.set(block, b.times.of().arrived(), now);
  now = pp::clock::now();
  b.times.take_piece(block + 1, 512 * (block + 1), now);
  now = pp::clock::now();
  b.gather.add(b.paused.counted(now, now + std::chrono::nanoseconds(1)), 0, 1);
  b.times.set_piece(b.times.of().gathered(), now);
  b.hands.leave(now);
  b.slots.leave(now);
}

void reader_s_part(benchmark::State& state) {
  books b;
  std::uint64_t block = 0;
  for (auto _ : state) read(b, block++);
}
BENCHMARK(reader_s_part);

void conductor_s_part(benchmark::State& state) {
  books b;
  std::uint64_t block = 0;
  for (auto _ : state) {
    let_in(b, block);
    put_out(b, block++);
  }
}
BENCHMARK(conductor_s_part);

/// All of it, with a batch for which the consumer waits: at most one for each block.
void a_block_that_is_waited_for(benchmark::State& state) {
  books b;
  std::vector<double> waits(b.times.of().states());
  std::uint64_t block = 0;
  for (auto _ : state) {
    const auto start = pp::clock::now();
    let_in(b, block);
    read(b, block);
    put_out(b, block);
    b.times.charge(start, pp::clock::now(), 512 * block, block, waits);
    ++block;
  }
}
BENCHMARK(a_block_that_is_waited_for);

}  // namespace

BENCHMARK_MAIN();
