#include "geometry.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
using namespace penstock::literals;
using kind = gpu::memory_kind;

namespace {

void add(pp::wiring& w, const char* name, penstock::type stored, penstock::type as, std::size_t elements) {
  pp::host_field from;
  from.name = name, from.element = stored, from.elements = elements, from.reader = w.host.size(), from.travels = true;
  pp::device_field to;
  to.name = name, to.element = as, to.elements = elements, to.in_ring = true;
  w.conversions.push_back({w.host.size(), w.device.size(), {}, stored == as});
  w.batch.push_back(w.device.size());
  w.host.push_back(from);
  w.device.push_back(to);
}

/// x: float32 rows of 4 KiB as they are; image: uint8 rows of 784, cast to float32.
pp::wiring two_fields() {
  pp::wiring w;
  add(w, "x", penstock::type::float32, penstock::type::float32, 1024);
  add(w, "image", penstock::type::uint8, penstock::type::float32, 784);
  return w;
}

pp::transport_task task(bool host, bool pooled) {
  pp::transport_task t;
  t.host = host;
  t.pooled = pooled;
  t.rows = 1'000'000;
  t.window_rows = pooled ? 2048 : t.rows;
  t.run_rows = pooled ? 64 : 0;
  t.chunk_rows = 64;
  t.batch_rows = 256;
  t.held = 1;
  t.processors = 4;
  t.reader_memory = [](std::size_t threads) {
    return std::vector<penstock::io::memory_item>{{"io: scratch", threads * 1_MiB}};
  };
  return t;
}

bool fits(const gpu::ledger& ledger, const gpu::budget& limits) {
  return ledger.total(kind::device) <= limits.device_bytes && ledger.total(kind::pinned) <= limits.pinned_bytes &&
         ledger.total(kind::host) <= limits.host_bytes;
}

const auto backends = boost::unit_test::data::make({false, true}) * boost::unit_test::data::make({false, true});

}  // namespace

BOOST_AUTO_TEST_SUITE(geometry)

BOOST_AUTO_TEST_CASE(rows_in_random_order_come_in_large_blocks_where_these_hold_a_row_of_each_chunk) {
  const pp::wiring w = two_fields();
  pp::transport_task t = task(true, false);
  t.row_bytes = 4096 + 784;
  t.decodes = true;
  t.run_rows = 1;
  t.rows = 200'000;  // 3125 chunks; 16 MiB are 3437 rows
  const auto bytes = [&](std::size_t budget) {
    return pp::plan_geometry(w, t, {budget, budget, 64_MiB}, {}).block_rows * t.row_bytes;
  };
  BOOST_TEST(bytes(4_GiB) == 3437u * t.row_bytes);
  BOOST_TEST(bytes(16_MiB) < 8_MiB);  // what is larger does not fit
  t.rows = 230'000;                   // 3593 chunks: most of them would be decoded for one row, whatever the block
  BOOST_TEST(bytes(4_GiB) <= 2_MiB);
  t.rows = 200'000;
  t.decodes = false;
  BOOST_TEST(bytes(4_GiB) <= 2_MiB);
  t.decodes = true;
  t.run_rows = 0;  // in sequence
  BOOST_TEST(bytes(4_GiB) <= 2_MiB);
}

BOOST_DATA_TEST_CASE(a_plan_never_exceeds_its_budget_and_grows_with_it, backends, host, pooled) {
  const pp::wiring w = two_fields();
  const pp::transport_task t = task(host, pooled);
  std::uint64_t ring = 0;
  for (const std::size_t mib : {32u, 48u, 64u, 128u, 512u}) {
    const gpu::budget limits{mib * 1_MiB, mib * 1_MiB / 2, 64_MiB};
    const pp::geometry g = pp::plan_geometry(w, t, limits, {});
    BOOST_TEST(fits(g.ledger, limits));
    BOOST_TEST(g.ring_rows % t.batch_rows == 0u);
    BOOST_TEST(g.ring_rows >= (t.held + 2) * t.batch_rows);
    BOOST_TEST(g.quantum_rows % t.batch_rows == 0u);
    // Consumed rows that are not given back yet, held ones and the next batch must fit together, or the run would hang.
    BOOST_TEST((t.held + 1) * t.batch_rows + g.quantum_rows + (g.lands_in_ring ? g.block_rows : 0) <= g.ring_rows);
    if (pooled) BOOST_TEST((host ? g.slots : g.images) >= g.blocks_of(t.window_rows));
    ring = std::max(ring, g.ring_rows);
  }
  BOOST_TEST(pp::plan_geometry(w, t, {2048_MiB, 1024_MiB, 64_MiB}, {}).ring_rows >= ring);
}

BOOST_DATA_TEST_CASE(the_smallest_budget_is_named_and_is_enough_and_a_byte_less_is_not, backends, host, pooled) {
  const pp::wiring w = two_fields();
  const pp::transport_task t = task(host, pooled);
  gpu::budget smallest;
  try {
    pp::plan_geometry(w, t, {1_MiB, 64_KiB, 64_KiB}, {});
    BOOST_FAIL("a budget of 1 MiB must not do");
  } catch (const gpu::budget_error& e) {
    smallest = e.smallest();
    BOOST_TEST(std::string(e.what()).find("pipeline: ring of x") != std::string::npos);
  }
  BOOST_TEST(fits(pp::plan_geometry(w, t, smallest, {}).ledger, smallest));
  --smallest.device_bytes;
  BOOST_CHECK_THROW(pp::plan_geometry(w, t, smallest, {}), gpu::budget_error);
}

BOOST_AUTO_TEST_CASE(what_others_took_counts) {
  gpu::ledger taken;
  taken.add(kind::device, "train: parameters", 100_MiB);
  const gpu::budget limits{132_MiB, 64_MiB, 64_MiB};
  const pp::geometry g = pp::plan_geometry(two_fields(), task(false, false), limits, taken);
  BOOST_TEST(g.ledger.total(kind::device) + 100_MiB <= limits.device_bytes);
}

BOOST_AUTO_TEST_CASE(only_what_needs_no_conversion_goes_straight_to_the_ring) {
  const pp::geometry device = pp::plan_geometry(two_fields(), task(false, false), {}, {});
  BOOST_TEST(device.straight[0]);
  BOOST_TEST(!device.straight[1]);
  BOOST_TEST(!device.lands_in_ring);
  const pp::geometry host = pp::plan_geometry(two_fields(), task(true, false), {}, {});
  BOOST_TEST(host.lands_in_ring);
  BOOST_TEST(host.host_offsets[0] == pp::none);
  const pp::geometry pooled = pp::plan_geometry(two_fields(), task(false, true), {}, {});
  BOOST_TEST(!pooled.straight[0]);
}

BOOST_AUTO_TEST_CASE(a_few_small_fields_beside_a_large_one_need_no_gather) {
  pp::wiring w;
  add(w, "x", penstock::type::float32, penstock::type::float32, 1024);
  for (const char* name : {"label", "weight", "mask"}) {
    add(w, name, penstock::type::int64, penstock::type::int64, 1);
    const pp::geometry g = pp::plan_geometry(w, task(false, false), {}, {});
    BOOST_TEST(std::ranges::count(g.straight, true) == static_cast<std::ptrdiff_t>(w.conversions.size()));
    BOOST_TEST(g.image_bytes == 0u);
    BOOST_TEST(pp::plan_geometry(w, task(false, true), {}, {}).image_bytes > 0u);
  }
  add(w, "group", penstock::type::int64, penstock::type::int64, 1);  // one kernel costs less than four copies
  const pp::geometry four = pp::plan_geometry(w, task(false, false), {}, {});
  BOOST_TEST(std::ranges::count(four.straight, true) == 1);
  BOOST_TEST(four.image_bytes > 0u);

  pp::wiring label_only;
  add(label_only, "label", penstock::type::int64, penstock::type::int64, 1);
  pp::transport_task few = task(false, false);
  few.rows = 1000;  // 8 kB in all
  BOOST_TEST(!pp::plan_geometry(label_only, few, {}, {}).straight[0]);
}

BOOST_AUTO_TEST_CASE(blocks_end_where_chunks_end) {
  pp::transport_task t = task(false, false);
  t.chunk_rows = 100;
  BOOST_TEST(pp::plan_geometry(two_fields(), t, {}, {}).block_rows % 100 == 0u);
}

BOOST_AUTO_TEST_CASE(a_plan_can_be_repeated_from_its_counts) {
  const pp::wiring w = two_fields();
  const pp::transport_task t = task(false, true);
  const pp::geometry g = pp::plan_geometry(w, t, {}, {});
  pp::pipeline_plan plan;
  plan.block_rows = g.block_rows, plan.slots = g.slots, plan.images = g.images, plan.ring_rows = g.ring_rows,
  plan.threads = g.threads, plan.most_threads = g.most_threads;
  BOOST_TEST(g.most_threads == 8u);  // twice the processors
  const pp::geometry again = pp::repeat_geometry(w, t, plan);
  for (const kind k : gpu::memory_kinds) BOOST_TEST(again.ledger.total(k) == g.ledger.total(k));
  BOOST_TEST(again.quantum_rows == g.quantum_rows);
}

BOOST_AUTO_TEST_CASE(wishes_are_kept) {
  pp::transport_task t = task(false, false);
  t.wish = {.block_bytes = 1_MiB, .slots = 7, .threads = 3};
  const pp::geometry g = pp::plan_geometry(two_fields(), t, {}, {});
  BOOST_TEST(g.slots == 7u);
  BOOST_TEST(g.threads == 3u);
  BOOST_TEST(g.slot_bytes <= 1_MiB + 512);
}

BOOST_AUTO_TEST_CASE(as_many_readers_may_be_tried_as_memory_is_there_for) {
  pp::transport_task t = task(false, false);  // a MiB for each reader
  BOOST_TEST(pp::plan_geometry(two_fields(), t, {.host_bytes = 64_MiB}, {}).most_threads == 8u);
  BOOST_TEST(pp::plan_geometry(two_fields(), t, {.host_bytes = 5_MiB}, {}).most_threads == 5u);
  t.decodes = true;
  BOOST_TEST(pp::plan_geometry(two_fields(), t, {}, {}).most_threads == 4u);
  t.decodes = false;
  t.wish.threads = 3;
  BOOST_TEST(pp::plan_geometry(two_fields(), t, {}, {}).most_threads == 3u);
}

BOOST_AUTO_TEST_CASE(slots_beyond_any_memory_do_not_fit) {
  pp::transport_task t = task(false, false);
  t.wish = {.block_bytes = 1_MiB, .slots = std::size_t{1} << 56};  // times the bytes of a slot: a multiple of 2^64
  BOOST_CHECK_THROW(pp::plan_geometry(two_fields(), t, {}, {}), gpu::budget_error);
}

BOOST_DATA_TEST_CASE(a_plan_knows_what_a_larger_budget_would_give_more_of, backends, host, pooled) {
  const pp::transport_task t = task(host, pooled);
  const std::size_t little = host && !pooled ? 16_MiB : 32_MiB;
  const pp::geometry tight = pp::plan_geometry(two_fields(), t, {little, 16_MiB, 64_MiB}, {});
  const pp::geometry ample = pp::plan_geometry(two_fields(), t, {4_GiB, 4_GiB, 64_MiB}, {});
  const pp::geometry beyond = pp::plan_geometry(two_fields(), t, {8_GiB, 8_GiB, 64_MiB}, {});
  BOOST_TEST(tight.ring_rows < ample.ring_rows);
  BOOST_TEST(tight.ring_cut_short);
  BOOST_TEST(beyond.ring_rows == ample.ring_rows);
  BOOST_TEST(beyond.slots == ample.slots);
  BOOST_TEST(!ample.ring_cut_short);
  BOOST_TEST(!ample.slots_cut_short);
  BOOST_TEST(!ample.readers_cut_short);
}

BOOST_AUTO_TEST_CASE(a_single_reader_has_its_reason) {
  pp::transport_task t = task(true, false);  // a MiB for each reader, on 4 processors
  const auto readers = [&](std::size_t host_bytes) {
    return pp::choices_of(t, pp::plan_geometry(two_fields(), t, {.host_bytes = host_bytes}, {})).back();
  };
  BOOST_TEST(readers(64_MiB) == "4 readers of at most 8, on 4 processors: tried while running");
  BOOST_TEST(readers(5_MiB) ==
             "4 readers of at most 5, on 4 processors: the host budget has no room for more; tried while running");
  BOOST_TEST(readers(1_MiB) == "1 reader: the host budget has no room for another");
  t.processors = 1;
  t.decodes = true;
  BOOST_TEST(readers(64_MiB) == "1 reader: there is one processor");
}

BOOST_AUTO_TEST_CASE(slots_take_what_stays_in_the_last_level_cache) {
  pp::transport_task t = task(false, false);
  t.processors = 16;  // 12 readers: from 16 to 30 slots of 2 MiB and more
  BOOST_TEST(pp::plan_geometry(two_fields(), t, {}, {}).slots * 2_MiB <= 64_MiB);
  t.cache_bytes = 48_MiB;
  BOOST_TEST(pp::plan_geometry(two_fields(), t, {}, {}).slots * 2_MiB <= 32_MiB);
  BOOST_TEST(pp::plan_geometry(two_fields(), t, {}, {}).slots >= 16u);
}

BOOST_AUTO_TEST_CASE(rows_of_small_batches_are_given_back_in_steps_of_four_blocks) {
  pp::transport_task t = task(false, false);
  const auto blocks_in_a_step = [&](std::size_t batch_rows) {
    t.batch_rows = batch_rows;
    const pp::geometry g = pp::plan_geometry(two_fields(), t, {}, {});
    return static_cast<double>(g.quantum_rows) / static_cast<double>(g.block_rows);
  };
  const std::size_t block_rows = pp::plan_geometry(two_fields(), t, {}, {}).block_rows;
  BOOST_REQUIRE_EQUAL(block_rows % 16, 0u);
  BOOST_TEST(blocks_in_a_step(block_rows / 16) == 4.0);
  BOOST_TEST(blocks_in_a_step(block_rows / 8) == 4.0);
  BOOST_TEST(blocks_in_a_step(block_rows / 4) == 1.0);
  BOOST_TEST(blocks_in_a_step(2 * block_rows) == 2.0);
  t.host = true;
  BOOST_REQUIRE_EQUAL(pp::plan_geometry(two_fields(), t, {}, {}).block_rows % 16, 0u);
  BOOST_TEST(blocks_in_a_step(pp::plan_geometry(two_fields(), t, {}, {}).block_rows / 16) == 1.0);
}

BOOST_AUTO_TEST_CASE(rows_come_out_of_a_pool_four_blocks_at_a_time_where_the_ring_has_room) {
  const auto blocks = [](bool host, bool pooled, std::size_t batch_rows, const pp::wiring& w,
                         std::size_t device_bytes) {
    pp::transport_task t = task(host, pooled);
    t.batch_rows = batch_rows;
    const pp::geometry g = pp::plan_geometry(w, t, {.device_bytes = device_bytes}, {});
    return static_cast<double>(g.piece_rows) / static_cast<double>(g.block_rows);
  };
  BOOST_TEST(blocks(false, true, 8, two_fields(), 1_GiB) == 4);
  BOOST_TEST(blocks(false, true, 256, two_fields(), 1_GiB) == 4);
  BOOST_TEST(blocks(false, false, 8, two_fields(), 1_GiB) == 1);
  BOOST_TEST(blocks(true, true, 8, two_fields(), 1_GiB) == 1);
  // A field that a transform still works on has a place of one block.
  pp::wiring unfinished = two_fields();
  unfinished.device[1].in_ring = false;
  BOOST_TEST(blocks(false, true, 8, unfinished, 1_GiB) == 1);
  const pp::geometry tight = pp::smallest_geometry(two_fields(), task(false, true));
  BOOST_TEST(tight.piece_rows == tight.block_rows);
}

BOOST_AUTO_TEST_CASE(decoding_takes_all_processors_for_a_device_and_for_the_host) {
  pp::transport_task t = task(false, false);
  t.processors = 16;
  BOOST_TEST(pp::plan_geometry(two_fields(), t, {}, {}).threads == 12u);
  t.decodes = true;
  BOOST_TEST(pp::plan_geometry(two_fields(), t, {}, {}).threads == 16u);
  t.processors = 1;
  BOOST_TEST(pp::plan_geometry(two_fields(), t, {}, {}).threads == 1u);
  t.host = true;
  t.processors = 16;
  BOOST_TEST(pp::plan_geometry(two_fields(), t, {}, {}).threads == 16u);
}

BOOST_DATA_TEST_CASE(readers_that_wait_for_a_disk_are_twice_the_processors, backends, host, pooled) {
  pp::transport_task t = task(host, pooled);
  t.waits_for_disk = true;
  const auto threads = [&](std::size_t processors) {
    t.processors = processors;
    return pp::plan_geometry(two_fields(), t, {}, {}).threads;
  };
  BOOST_TEST(threads(1) == 2u);
  BOOST_TEST(threads(16) == 32u);
  BOOST_TEST(threads(48) == 64u);
  BOOST_TEST(threads(128) == (host ? 128u : 96u));
  t.wish.threads = 5;
  BOOST_TEST(threads(16) == 5u);
}

BOOST_AUTO_TEST_CASE(a_budget_of_the_host_that_holds_fewer_readers_gets_fewer) {
  pp::transport_task t = task(false, false);
  t.processors = 16;
  t.waits_for_disk = true;
  BOOST_TEST(pp::plan_geometry(two_fields(), t, {.host_bytes = 20_MiB}, {}).threads == 16u);
}

BOOST_AUTO_TEST_CASE(a_smaller_pool_is_advised_where_the_pool_is_what_is_too_large) {
  const auto sentence = [](pp::transport_task t, const gpu::budget& limits) {
    try {
      pp::plan_geometry(two_fields(), t, limits, {});
    } catch (const gpu::budget_error& e) {
      return std::string(e.what()).substr(0, std::string(e.what()).find('\n'));
    }
    return std::string();
  };
  const std::string plain = "the pipeline does not fit its budget";
  const gpu::budget enough{.device_bytes = 1_GiB, .pinned_bytes = 1_GiB, .host_bytes = 1_GiB};
  gpu::budget small_device = enough, small_host = enough;
  small_device.device_bytes = 8_MiB;  // a pool of 2048 rows takes 9.5 MiB
  small_host.host_bytes = 1_KiB;
  for (const bool host : {false, true}) {
    BOOST_TEST(sentence(task(host, true), small_device).find("lower run_rows and pool_rows") != std::string::npos);
    BOOST_TEST(sentence(task(host, true), small_host) == plain);
    pp::transport_task large = task(host, true);
    large.batch_rows = std::size_t{1} << 20;  // of 7 KiB on the device: the ring is what does not fit
    BOOST_TEST(sentence(large, enough) == plain);
    large.batch_rows = std::size_t{1} << 52;  // times 4 KiB is 2^64
    BOOST_TEST(sentence(large, enough) == plain);
  }
}

BOOST_AUTO_TEST_CASE(a_wish_that_cannot_be_met_as_it_is_is_not_said_to_be) {
  pp::transport_task t = task(false, false);
  t.row_bytes = 4096 + 784;
  t.wish = {.block_bytes = 1'000'000, .slots = 1, .threads = 3};
  const auto lines = pp::choices_of(t, pp::plan_geometry(two_fields(), t, {}, {}));
  BOOST_TEST(lines.at(0).ends_with(": as asked for (977 KiB), as far as rows and chunks allow"), lines.at(0));
  BOOST_TEST(lines.at(1).ends_with(": the fewest that there can be; 1 asked for"), lines.at(1));
  t.wish = {.block_bytes = 64 * t.row_bytes, .slots = 7, .threads = 3};
  for (const auto& line : pp::choices_of(t, pp::plan_geometry(two_fields(), t, {}, {})))
    BOOST_TEST(line.ends_with(": as asked for"), line);
}

BOOST_AUTO_TEST_SUITE_END()
