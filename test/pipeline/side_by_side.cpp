// Several blocks in one copy to the device: which of them may go together, and that what comes out of such copies is
// right where slots and images go over their rings' ends, and where blocks and windows are short.
#include "side_by_side.hpp"

#include "small_file.hpp"

#include <penstock/fault.hpp>
#include <penstock/pipeline/pipeline.hpp>

#include <boost/test/unit_test.hpp>

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <latch>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>
#include <vector>

#include "../support/gpu.hpp"

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
using namespace penstock::literals;
using penstock::test::small_file;

namespace {

gpu::slot_ring ring(std::size_t slots, std::size_t slot_bytes, std::uint64_t taken, std::uint64_t given_back) {
  gpu::slot_ring made({}, slot_bytes, slots);
  for (std::uint64_t n = 0; n < taken; ++n) made.take();
  made.give_back_to(given_back);
  return made;
}

/// Holds copies to the device, which another thread than its maker's makes, until they are let go.
class held_copies : public penstock::fault_injector {
 public:
  penstock::fault before(penstock::fault_site site, std::string_view what, std::uint64_t, std::size_t) override {
    if (site == penstock::fault_site::cuda_call && what == "cudaMemcpyAsync" && std::this_thread::get_id() != maker_)
      go_.wait();
    return {};
  }
  void let_go() { go_.count_down(); }

 private:
  const std::thread::id maker_ = std::this_thread::get_id();
  std::latch go_{1};
};

/// Blocks that were read and not handed on, at the most.
std::uint64_t most_piled_up(const pp::pipeline& pipeline) {
  const auto report = pipeline.report();
  return std::ranges::find(report.stages, "device thread", &pp::stage_report::name)->most_queue;
}

/// A copy to the device, as the trace tells it.
struct copy_made {
  std::uint64_t block = 0, rows = 0;
  double begin = 0;
};

std::vector<copy_made> copies_of(const pp::pipeline& pipeline) {
  const auto path = std::filesystem::temp_directory_path() / ("penstock-copies-" + std::to_string(::getpid()));
  BOOST_TEST(pipeline.write_trace(path) == 0u);
  const auto trace = nlohmann::json::parse(std::ifstream(path));
  std::filesystem::remove(path);
  std::vector<copy_made> copies;
  for (const auto& event : trace.at("traceEvents"))
    if (event.at("name") == "copy")
      copies.push_back({event.at("args").at("block"), event.at("args").at("rows"), event.at("ts")});
  std::ranges::sort(copies, {}, &copy_made::begin);
  return copies;
}

constexpr std::uint64_t rows = 10007, run_rows = 32, pool_rows = 352, block_rows = 64, epochs = 3;
constexpr std::size_t row_bytes = 33 * 4 + 12 + 4;  // of the three fields

const gpu::budget limits{.device_bytes = 8_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB};

/// Windows of five blocks and a half, of rows whose number nothing divides; batches so small that four blocks come out
/// together.
pp::description shuffled_rows(const small_file& file, bool poisoned) {
  return pp::read(file.all(), pp::shuffled{.seed = 3, .run_rows = run_rows, .pool_rows = pool_rows}) |
         pp::transport({.block_bytes = block_rows * row_bytes, .slots = 7, .threads = 2}) |
         pp::batched({.rows = 8, .poisoned = poisoned}) | pp::traced();
}

/// A budget in which the number of images is odd, so that a copy of four meets the ring's end at every place.
gpu::budget odd_budget(const pp::opened& from, gpu::device d) {
  gpu::budget odd = limits;
  odd.device_bytes = from.plan(d, limits).ledger.total(gpu::memory_kind::device);
  while (from.plan(d, odd).images % 2 == 0) odd.device_bytes -= 4_KiB;
  return odd;
}

/// No two blocks of a copy lie on both sides of a ring's end, and each row is copied once.
void check_copies(const pp::pipeline& pipeline) {
  const pp::pipeline_plan& plan = pipeline.plan();
  const auto copies = copies_of(pipeline);
  std::uint64_t next = 0, copied = 0, most = 0;
  for (std::size_t n = 0; n < copies.size(); ++n) {
    BOOST_TEST(copies[n].block == next);
    next = n + 1 < copies.size() ? copies[n + 1].block : pipeline.report().stages.front().blocks;
    const std::uint64_t blocks = next - copies[n].block;
    BOOST_TEST(copies[n].block % plan.slots + blocks <= plan.slots);
    BOOST_TEST(copies[n].block % plan.images + blocks <= plan.images);
    BOOST_TEST(copies[n].rows <= blocks * block_rows);
    copied += copies[n].rows;
    most = std::max(most, blocks);
  }
  BOOST_TEST(copied == epochs * rows);
  BOOST_TEST(most == 4u);  // of seven blocks that piled up, whether one, two or three were in the first copy
}

/// Values are checked against their rows' numbers, batch by batch. The first copy is held until all slots are full, so
/// that there are blocks for a copy of four.
void stream_and_check(bool poisoned) {
  const auto d = penstock::test::first_gpu();
  const small_file file(rows, 64);
  const auto copies = std::make_shared<held_copies>();
  const pp::description what = shuffled_rows(file, poisoned) | penstock::fault_seam(copies);
  auto pipeline = what.build(d, odd_budget(what.open(), d));
  BOOST_REQUIRE_EQUAL(pipeline.plan().block_rows, block_rows);
  BOOST_REQUIRE_EQUAL(pipeline.plan().slots, 7u);
  BOOST_REQUIRE_EQUAL(pipeline.plan().images % 2, 1u);
  BOOST_REQUIRE_GE(pipeline.plan().images, 7u);

  auto run = pipeline.epochs(0, epochs);
  while (most_piled_up(pipeline) < pipeline.plan().slots) std::this_thread::yield();
  copies->let_go();
  std::vector<std::uint64_t> seen;
  for (const pp::batch& batch : run) penstock::test::check(batch, seen);
  auto host = shuffled_rows(file, false).build(gpu::device::host(), limits);
  BOOST_TEST((seen == penstock::test::consume(host, 0, epochs)));
  std::vector<std::uint64_t> each(rows), first_epoch(seen.begin(), seen.begin() + rows);
  std::iota(each.begin(), each.end(), 0);
  std::ranges::sort(first_epoch);
  BOOST_TEST((first_epoch == each));
  check_copies(pipeline);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(blocks_side_by_side, *boost::unit_test::timeout(300))

BOOST_AUTO_TEST_CASE(a_copy_ends_where_blocks_that_came_out_free_images_or_a_rings_end_are_reached) {
  constexpr std::size_t bytes = 1024;
  const auto count = [&](std::uint64_t most, std::uint64_t first, std::uint64_t end, std::size_t slots,
                         std::size_t images, std::uint64_t given_back) {
    return pp::side_by_side(most, first, end, ring(slots, bytes, first, 0), ring(images, bytes, first, given_back));
  };
  BOOST_TEST(count(4, 0, 9, 12, 16, 0) == 4u);    // as many as go together
  BOOST_TEST(count(1, 0, 9, 12, 16, 0) == 1u);    //
  BOOST_TEST(count(4, 0, 3, 12, 16, 0) == 3u);    // three came out
  BOOST_TEST(count(4, 14, 20, 99, 16, 0) == 2u);  // images 14 and 15 are free, and no more
  BOOST_TEST(count(4, 14, 20, 99, 16, 9) == 2u);  // 0 to 8 are free, too, but do not lie after 15
  BOOST_TEST(count(4, 16, 20, 99, 16, 3) == 3u);  // 0 to 2 are free
  BOOST_TEST(count(4, 22, 30, 12, 99, 0) == 2u);  // slots 10 and 11 of 12
  BOOST_TEST(count(4, 24, 30, 12, 99, 0) == 4u);  // slots 0 to 3
  BOOST_TEST(count(4, 13, 30, 7, 5, 13) == 1u);   // slot 6 of 7, though images 3 and 4 of 5 are free
  BOOST_TEST(count(4, 18, 30, 7, 5, 18) == 2u);   // images 3 and 4 of 5, though slots 4 to 6 of 7 are there
}

BOOST_AUTO_TEST_CASE(blocks_whose_slots_hold_more_than_is_copied_go_one_by_one) {
  BOOST_TEST(pp::side_by_side(4, 0, 9, ring(12, 2048, 0, 0), ring(16, 1024, 0, 0)) == 1u);
}

BOOST_AUTO_TEST_CASE(rows_that_came_in_copies_of_several_blocks_are_right_where_rings_end_and_blocks_are_short,
                     penstock::test::on_gpu()) {
  stream_and_check(false);
}

BOOST_AUTO_TEST_CASE(such_rows_are_right_where_what_was_given_back_is_poisoned, penstock::test::on_gpu()) {
  stream_and_check(true);
}

BOOST_AUTO_TEST_SUITE_END()
