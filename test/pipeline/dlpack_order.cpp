// Which streams wait for which around an exported tensor, proven with a kernel that spins until the host opens a gate.
#include "small_file.hpp"

#include <penstock/gpu/memory.hpp>
#include <penstock/pipeline/dlpack.hpp>

#include "../gpu/spin.hpp"
#include "../support/gpu.hpp"
#include "spin_stage.hpp"

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
using namespace penstock;
using namespace penstock::literals;
using penstock::test::small_file;

namespace {

pp::pipeline build(const small_file& file, gpu::device d) {
  return (pp::read(file.plain()) | pp::batched({.rows = 64}))
      .build(d, {.device_bytes = 8_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(dlpack_order)

BOOST_AUTO_TEST_CASE(the_stream_of_an_export_waits_for_the_batch_s_stream, test::on_gpu()) {
  const auto d = test::first_gpu();
  const test::spin_stage s(d);
  const small_file file(1000, 64);
  auto pipeline = build(file, d);
  const gpu::stream mine(d), other(d);
  auto range = pipeline.epochs(0, 1, {.stream = mine.ref()});
  const pp::shared_batch batch(range.next());
  test::spin_until(mine, s.gate(), s.mark(), 42);
  const auto tensor = batch.tensor("label", other.ref());
  copy(other, s.seen(), s.mark(), 4);
  gpu::event at_other(d);
  at_other.record(other);
  BOOST_TEST(!at_other.done());
  s.open();
  at_other.synchronize();
  BOOST_TEST(*s.seen() == 42U);
}

BOOST_AUTO_TEST_CASE(rows_are_written_again_only_after_the_stream_of_their_export, test::on_gpu()) {
  const auto d = test::first_gpu();
  const test::spin_stage s(d);
  const small_file file(20000, 64);
  auto pipeline = build(file, d);
  const gpu::stream mine(d), other(d);
  auto range = pipeline.epochs(0, 1000, {.stream = mine.ref()});
  auto first = range.next();
  const void* const rows = first.view("label").data;
  auto tensor = pp::shared_batch(std::move(first)).tensor("label", other.ref());
  test::spin_until(other, s.gate(), s.mark(), 42);
  tensor.reset();
  // Goes round the ring until a batch lies where the first one was; the writes before it wait for the gate.
  pp::batch again = range.next();
  while (again.view("label").data != rows) again = range.next();
  copy(mine, s.seen(), s.mark(), 4);
  gpu::event at_mine(d);
  at_mine.record(mine);
  BOOST_TEST(!at_mine.done());
  s.open();
  at_mine.synchronize();
  BOOST_TEST(*s.seen() == 42U);
}

BOOST_AUTO_TEST_CASE(the_stream_of_an_export_may_end_once_the_batch_was_given_back, test::on_gpu()) {
  const auto d = test::first_gpu();
  const small_file file(1000, 64);
  auto pipeline = build(file, d);
  const gpu::stream mine(d);
  std::size_t rows = 0;
  auto range = pipeline.epochs(0, 3, {.stream = mine.ref()});
  for (;;) {
    pp::batch next = range.next();
    if (!next) break;
    rows += next.rows();
    const gpu::stream other(d);
    auto tensor = pp::shared_batch(std::move(next)).tensor("label", other.ref());
    tensor.reset();  // the last share
  }
  BOOST_TEST(rows == 3000U);
}

BOOST_AUTO_TEST_SUITE_END()
