#include "small_file.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <algorithm>

namespace pp = penstock::pipeline;
namespace gpu = penstock::gpu;
namespace data = boost::unit_test::data;
using namespace penstock::literals;
using penstock::test::check;
using penstock::test::consume;
using penstock::test::small_file;

namespace {

const auto every_device = data::make(penstock::test::devices());
const auto endings = data::make({pp::last_batch::pad, pp::last_batch::drop});
const gpu::budget small{.device_bytes = 8_MiB, .pinned_bytes = 4_MiB, .host_bytes = 64_MiB};
const pp::shuffled by_runs{.seed = 7, .run_rows = 40, .pool_rows = 160};

pp::pipeline shard_of(const small_file& file, const std::string& device, std::uint64_t shard, std::uint64_t shards,
                      pp::last_batch last, pp::order_options how = by_runs) {
  return (pp::read(file.all(), how) | pp::batched({.rows = 32, .last = last}) |
          pp::sharded({.shards = shards, .rank = shard}))
      .build(gpu::device::parse(device), small);
}

/// The rows of each step of all ranks together, sorted: 48 rows a step, dealt to 8 shards.
std::vector<std::vector<std::uint64_t>> steps_of(const small_file& file, const std::string& device, std::uint64_t ranks,
                                                 pp::last_batch last, const pp::order_options& how) {
  std::vector<std::vector<std::uint64_t>> steps;
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    auto pipeline = (pp::read(file.all(), how) | pp::batched({.rows = 48 / ranks, .last = last}) |
                     pp::sharded({.shards = 8, .rank = rank, .ranks = ranks}))
                        .build(gpu::device::parse(device), small);
    steps.resize(2 * pipeline.batches_per_epoch());
    for (const pp::batch& batch : pipeline.epochs(0, 2))
      check(batch, steps[batch.epoch() * pipeline.batches_per_epoch() + batch.index()]);
  }
  for (auto& rows : steps) std::sort(rows.begin(), rows.end());
  return steps;
}

}  // namespace

namespace penstock::pipeline {
std::ostream& operator<<(std::ostream& out, last_batch last) { return out << static_cast<int>(last); }
}  // namespace penstock::pipeline

BOOST_AUTO_TEST_SUITE(shards)

BOOST_DATA_TEST_CASE(all_shards_get_the_same_number_of_batches_and_every_row_once, every_device* endings, name, last) {
  const small_file file(1003, 64, 1);
  std::vector<std::uint64_t> rows;
  std::uint64_t batches = 0, valid = 0;
  for (std::uint64_t shard = 0; shard < 3; ++shard) {
    auto pipeline = shard_of(file, name, shard, 3, last);
    std::uint64_t own = 0;
    for (const pp::batch& batch : pipeline.epochs(0, 1)) {
      check(batch, rows);
      BOOST_TEST(batch.rows() == 32u);
      BOOST_TEST(batch.index() == own);
      valid += batch.valid_rows();
      ++own;
    }
    BOOST_TEST(own == pipeline.batches_per_epoch());
    if (shard > 0) BOOST_TEST(own == batches);
    batches = own;
  }
  // 1003 rows dealt to three: 335, 334 and 334.
  BOOST_TEST(batches == (last == pp::last_batch::pad ? (335u + 31) / 32 : 334u / 32));
  if (last == pp::last_batch::drop) BOOST_TEST(valid == 3 * 320u);
  std::sort(rows.begin(), rows.end());
  BOOST_TEST((std::adjacent_find(rows.begin(), rows.end()) == rows.end()));
  if (last == pp::last_batch::pad) BOOST_TEST(rows.size() == 1003u);
}

BOOST_DATA_TEST_CASE(a_shard_without_rows_gets_batches_that_are_all_padding, every_device, name) {
  const small_file file(2, 64);
  auto pipeline = shard_of(file, name, 2, 3, pp::last_batch::pad);
  BOOST_TEST(pipeline.rows() == 0u);
  std::uint64_t batches = 0;
  for (const pp::batch& batch : pipeline.epochs(0, 2)) {
    BOOST_TEST(batch.valid_rows() == 0u);
    BOOST_TEST(batch.rows() == 32u);
    BOOST_TEST(batch.row_ids().empty());
    ++batches;
  }
  BOOST_TEST(batches == 2 * 1u);  // the first two shards have a row each
}

BOOST_AUTO_TEST_CASE(epochs_follow_each_other_and_runs_resume_in_a_shard) {
  const small_file file(1003, 64);
  auto pipeline = shard_of(file, "host", 1, 3, pp::last_batch::pad);
  auto both = consume(pipeline, 0, 1);
  const auto second = consume(pipeline, 1, 1);
  BOOST_TEST(both != second);
  both.insert(both.end(), second.begin(), second.end());
  BOOST_TEST(consume(pipeline, 0, 2) == both);
  // A state is every shard's: where it was taken does not matter.
  const auto at = pipeline.resume_at(shard_of(file, "host", 0, 3, pp::last_batch::pad).state({0, 4}));
  const auto rest = consume(pipeline, at.epoch, 2, {.first_batch = at.batch});
  BOOST_TEST(rest == (std::vector<std::uint64_t>(both.begin() + 4 * 32, both.end())));
}

BOOST_AUTO_TEST_CASE(shards_whose_batches_would_differ_in_number_are_refused) {
  const small_file file(1003, 64);
  BOOST_CHECK_EXCEPTION(shard_of(file, "host", 0, 3, pp::last_batch::keep), std::invalid_argument, [](const auto& e) {
    return std::string(e.what()).find("same number of batches") != std::string::npos;
  });
}

BOOST_DATA_TEST_CASE(every_number_of_processes_sees_the_same_rows_in_each_step, every_device* endings, name, last) {
  const small_file file(701, 64, 1);
  for (const pp::order_options& how : std::vector<pp::order_options>{
           pp::sequential{}, pp::shuffled{.seed = 7, .run_rows = 10, .pool_rows = 35}, pp::random{.seed = 3}}) {
    const auto eight = steps_of(file, name, 8, last, how);
    BOOST_TEST(eight.size() == 2 * (last == pp::last_batch::pad ? 15u : 14u));  // 701 / 48 = 14.6
    for (const std::uint64_t ranks : {1u, 2u, 4u}) BOOST_TEST((steps_of(file, name, ranks, last, how) == eight));
  }
}

BOOST_AUTO_TEST_CASE(a_state_goes_on_with_another_number_of_processes) {
  const small_file file(1003, 64);
  const auto build = [&](std::uint64_t rank, std::uint64_t ranks) {
    return (pp::read(file.all(), by_runs) | pp::batched({.rows = 48 / ranks, .last = pp::last_batch::pad}) |
            pp::sharded({.shards = 4, .rank = rank, .ranks = ranks}))
        .build(gpu::device::host(), small);
  };
  const std::string state = build(3, 4).state({2, 7});
  auto one = build(0, 1);
  BOOST_TEST((one.resume_at(state) == pp::run_position{2, 7}));
  // Resumed or not: the same rows in each step.
  const auto all = consume(one, 2, 1);
  BOOST_TEST(consume(one, 2, 1, {.first_batch = 7}) == (std::vector<std::uint64_t>(all.begin() + 7 * 48, all.end())));
}

BOOST_AUTO_TEST_SUITE_END()
