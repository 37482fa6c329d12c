#include "host/backend.hpp"
#include "training_file.hpp"

#include <tbb/info.h>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>

using namespace penstock;
using gpu::memory_kind;
using penstock::test::small_trainer;
using penstock::test::training_file;

BOOST_AUTO_TEST_SUITE(memory_plan)

BOOST_AUTO_TEST_CASE(what_is_taken_is_what_is_planned) {
  const training_file data;
  const auto options = small_trainer();
  auto training = data.open(64), testing = data.open(64);
  const gpu::budget limits;
  const auto plan = train::plan(gpu::device::host(), limits, options.stage, training, &testing);
  const auto run = train::build(plan, std::move(training), std::move(testing));
  for (const memory_kind kind : {memory_kind::device, memory_kind::pinned})
    BOOST_TEST(run.memory->bytes(kind) == plan.ledger.total(kind));
  BOOST_TEST(plan.ledger.fits(limits));
  // The stage's own items and the training pipeline's are all there, and the test set adds to host memory alone or the
  // room that it lacks.
  std::size_t items = 0;
  for (const auto& part : {train::plan(gpu::device::host(), options.stage), plan.training.ledger})
    for (const auto& item : part.items()) {
      if (item.kind == memory_kind::host) continue;
      ++items;
      BOOST_TEST(run.memory->at(item.kind, item.name).size() == item.bytes);
    }
  BOOST_TEST(items > 10u);
}

BOOST_AUTO_TEST_CASE(a_budget_too_small_is_refused_with_the_ledger_and_what_would_do) {
  const training_file data;
  const auto options = small_trainer();
  const auto training = data.open(64), testing = data.open(64);
  gpu::budget limits;
  limits.device_bytes = 20'000;
  gpu::budget smallest;
  BOOST_CHECK_EXCEPTION(train::plan(gpu::device::host(), limits, options.stage, training, &testing), gpu::budget_error,
                        [&](const gpu::budget_error& e) {
                          const std::string text = e.what();
                          smallest = e.smallest();
                          return text.find("train: parameters") != std::string::npos &&
                                 text.find("pipeline: ring of x") != std::string::npos;
                        });
  BOOST_TEST(smallest.device_bytes > 20'000u);
  BOOST_CHECK_NO_THROW(train::plan(gpu::device::host(), smallest, options.stage, training, &testing));
  smallest.device_bytes -= 1;
  BOOST_CHECK_THROW(train::plan(gpu::device::host(), smallest, options.stage, training, &testing), gpu::budget_error);
}

BOOST_AUTO_TEST_CASE(batches_of_other_rows_than_the_stages_are_refused_with_both) {
  const training_file data;
  const auto options = small_trainer(64);
  const auto names_both = [](const std::invalid_argument& e) {
    const std::string text = e.what();
    return text.find("64 rows") != std::string::npos && text.find("50 rows") != std::string::npos;
  };
  const auto same = data.open(64), other = data.open(50);
  BOOST_CHECK_EXCEPTION(train::plan(gpu::device::host(), {}, options.stage, other), std::invalid_argument, names_both);
  BOOST_CHECK_EXCEPTION(train::plan(gpu::device::host(), {}, options.stage, same, &other), std::invalid_argument,
                        names_both);
  BOOST_CHECK_NO_THROW(train::plan(gpu::device::host(), {}, options.stage, same, &same));
}

BOOST_AUTO_TEST_CASE(threads_are_charged_for_as_many_as_can_compute) {
  // 4 MiB for each of them; the arena has no more threads than TBB has workers.
  const auto workers = static_cast<std::size_t>(tbb::info::default_concurrency());
  for (const std::size_t threads : {std::size_t{1}, workers, workers + 1, std::size_t{1000}}) {
    auto options = small_trainer().stage;
    options.threads = threads;
    BOOST_TEST(train::plan(gpu::device::host(), options).total(memory_kind::host) ==
               std::min(threads, workers) * (std::size_t{4} << 20));
  }
}

BOOST_AUTO_TEST_CASE(threads_that_nobody_asked_for_are_64_at_most) {
  using train::host::computing_threads;  // asked for, of the process, of TBB
  BOOST_TEST(computing_threads(0, 16, 16) == 16u);
  BOOST_TEST(computing_threads(0, 200, 200) == 64u);
  BOOST_TEST(computing_threads(0, 8, 200) == 8u);  // a quota
  BOOST_TEST(computing_threads(0, 200, 48) == 48u);
  BOOST_TEST(computing_threads(200, 200, 200) == 200u);
  BOOST_TEST(computing_threads(200, 2, 2) == 2u);
}

BOOST_AUTO_TEST_SUITE_END()
