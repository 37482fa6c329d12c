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
          pp::sharded({.shards = shards, .shard = shard}))
      .build(gpu::device::parse(device), small);
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
  // 25 full runs of 40 rows and one of 3, in turn: 9, 8 and 8 runs; the short one is shard 1's.
  BOOST_TEST(batches == (last == pp::last_batch::pad ? (360u + 31) / 32 : 320u / 32));
  if (last == pp::last_batch::drop) BOOST_TEST(valid == 3 * 320u);
  std::sort(rows.begin(), rows.end());
  BOOST_TEST((std::adjacent_find(rows.begin(), rows.end()) == rows.end()));
  if (last == pp::last_batch::pad) BOOST_TEST(rows.size() == 1003u);
}

BOOST_DATA_TEST_CASE(a_shard_without_rows_gets_batches_that_are_all_padding, every_device, name) {
  const small_file file(50, 64);
  auto pipeline = shard_of(file, name, 2, 3, pp::last_batch::pad);
  BOOST_TEST(pipeline.rows() == 0u);
  std::uint64_t batches = 0;
  for (const pp::batch& batch : pipeline.epochs(0, 2)) {
    BOOST_TEST(batch.valid_rows() == 0u);
    BOOST_TEST(batch.rows() == 32u);
    BOOST_TEST(batch.row_ids().empty());
    ++batches;
  }
  BOOST_TEST(batches == 2 * 2u);  // the first shard's 40 rows are two batches
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

BOOST_AUTO_TEST_SUITE_END()
