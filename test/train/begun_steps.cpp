// Runs that are stopped between two batches of a step: what they keep of it, and go on with.
#include "begun_runs.hpp"
#include "gpu.hpp"

#include <penstock/io/attribute.hpp>
#include <penstock/train/error.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <nlohmann/json.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <ostream>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace penstock;
using namespace penstock::test;
using nlohmann::json;

namespace {

/// A way to train, by its name.
struct way {
  const char* name;
  std::function<void(train::trainer_options&)> set;
  double loss_scale = 0;     // that it begins with; 0: its own
  bool has_bad_row = false;  // a value that is not finite, in a step that is skipped
  friend std::ostream& operator<<(std::ostream& to, const way& w) { return to << w.name; }
};

const std::vector<way>& ways() {
  using options = train::trainer_options;
  static const std::vector<way> all{
      {"float32", [](options&) {}},
      {"float64", [](options& o) { o.stage.compute = type::float64; }},
      {"bf16", [](options& o) { o.stage.precision = train::precision::bf16; }},
      {"fp16", [](options& o) { o.stage.precision = train::precision::fp16; }},
      {"fp16 that overflows", [](options& o) { o.stage.precision = train::precision::fp16; }, 0x1p18},
      {"dropout",
       [](options& o) {
         o.stage.model.dropout = 0.3, o.stage.model.hidden = {24, 16};
       }},
      {"clipped, with class weights",
       [](options& o) {
         o.stage.clip_norm = 0.1, o.stage.class_weights = {1, 2, 0, 0.5};
       }},
      {"steps with a bad row are skipped", [](options& o) { o.stage.non_finite = train::non_finite::skip; }, 0, true},
      {"every lever", [](options& o) {
         o.stage.model = {.inputs = 12, .hidden = {24, 16, 16}, .outputs = 4, .activation = train::activation::gelu};
         o.stage.recompute_layers = 3;
         o.stage.offload = {.optimizer = true, .activations = true, .ring_bytes = 4096};
       }}};
  return all;
}

json text_of(const std::filesystem::path& file) { return json::parse(*io::read_attribute(file, "/", "penstock")); }

/// Metrics after each step, and state and counts at the end, of a run of two epochs, of which the first may begin late.
struct outcome {
  std::vector<train::epoch_progress> steps;
  std::vector<std::byte> state;
};

outcome finish(whole_run& run) {
  outcome all;
  while (run.trainer.position().epoch < 2)
    run.epoch({}, [&](const train::epoch_progress& at) { all.steps.push_back(at); });
  all.state = run.state();
  return all;
}

void check_same(const outcome& found, const outcome& whole, const std::string& which) {
  BOOST_TEST((found.state == whole.state), which << ": other weights or moments");
  BOOST_TEST_REQUIRE(found.steps.size() <= whole.steps.size(), which);
  const std::size_t before = whole.steps.size() - found.steps.size();
  for (std::size_t n = 0; n < found.steps.size(); ++n) {
    const train::epoch_progress &a = found.steps[n], &b = whole.steps[before + n];
    BOOST_TEST((a.epoch == b.epoch && a.batches == b.batches && a.steps == b.steps && a.skipped == b.skipped), which);
    BOOST_TEST((a.training.loss_sum == b.training.loss_sum && a.training.rows == b.training.rows &&
                a.training.correct == b.training.correct && a.training.weight_sum == b.training.weight_sum &&
                a.training.in_top_k == b.training.in_top_k),
               which << ": another line of the log");
  }
}

void check_every_place(const way& how, gpu::device device) {
  training_file data(split::rows);
  if (how.has_bad_row) data.x[70 * training_file::columns + 3] = std::numeric_limits<float>::quiet_NaN();
  data.write();
  auto options = begun_options();
  how.set(options);
  whole_run undisturbed(data, options, device, how.loss_scale);
  const outcome whole = finish(undisturbed);
  BOOST_TEST_REQUIRE(whole.steps.size() == 12u);  // five steps an epoch, and its end
  BOOST_TEST((whole.steps.back().skipped > 0) == (how.loss_scale > 0 || how.has_bad_row));
  const auto file = data.path("begun.h5");
  for (std::uint64_t done = 1; done < split::batches; ++done) {
    save_after(done, data, options, device, how.loss_scale, file);
    const json text = text_of(file);
    const bool begun = done % split::in_step != 0;
    BOOST_TEST(text.contains("begun_step") == begun);
    BOOST_TEST(text.at("checksums").contains("/gradients/layer0/weight") == begun);
    whole_run resumed(data, options, device);
    if (device.is_host()) BOOST_TEST(resumed.trainer.resume(file) == "");
    if (device.is_cuda()) resumed.trainer.resume(file);
    BOOST_TEST(resumed.trainer.position().next_batch == done / split::in_step * split::in_step);
    BOOST_TEST(resumed.trainer.position().begun.batches == done % split::in_step);
    check_same(finish(resumed), whole, "after " + std::to_string(done) + " batches");
  }
}

/// Counts what is allocated of the plan's kinds.
struct allocation_counter final : fault_injector {
  std::atomic<std::size_t> count{0};
  fault before(fault_site site, std::string_view, std::uint64_t, std::size_t) override {
    count +=
        site == fault_site::allocate_device || site == fault_site::allocate_pinned || site == fault_site::allocate_host;
    return {};
  }
};

/// Stops a run again and again, at moments that shift, until its second epoch is done.
void check_stops(gpu::device device, bool anew) {
  const way& how = ways().front();
  const training_file data(12000);
  auto options = begun_options(8, 32);
  how.set(options);
  options.stage.model.hidden = {64, 64};
  options.report_every = 0;
  options.check_every = 1;
  whole_run undisturbed(data, options, device);
  std::vector<train::metrics> epochs;
  for (int epoch = 0; epoch < 2; ++epoch) epochs.push_back(undisturbed.epoch().training);
  const auto allocations = std::make_shared<allocation_counter>();
  std::optional<whole_run> run;
  run.emplace(data, options, device, 0, allocations);
  const std::size_t first = allocations->count;
  std::size_t within = 0, stops = 0;
  while (run->trainer.position().epoch < 2) {
    std::stop_source stop;
    std::atomic<bool> begun{false};
    std::jthread other([&] {
      while (!begun) std::this_thread::yield();
      const auto from = std::chrono::steady_clock::now();
      while (std::chrono::steady_clock::now() - from < stops % 50 * std::chrono::microseconds(37)) {
      }
      stop.request_stop();
    });
    const train::epoch_progress done = run->epoch(stop.get_token(), [&](const auto&) { begun = true; });
    begun = true;
    other.join();
    if (done.complete) {
      const train::metrics& same = epochs.at(done.epoch);
      BOOST_TEST((done.training.loss_sum == same.loss_sum && done.training.rows == same.rows &&
                  done.training.correct == same.correct));
      continue;
    }
    ++stops;
    const std::uint64_t begun_batches = run->trainer.position().begun.batches;
    BOOST_TEST(done.batches == run->trainer.position().next_batch);
    within += begun_batches > 0 ? 1 : 0;
    if (stops % 7 == 0) run->trainer.evaluate(run->planned.training);
    if (!anew) continue;
    const auto file = data.path("stopped.h5");
    run->trainer.save(file);
    run.reset();
    run.emplace(data, options, device);
    run->trainer.resume(file);
    BOOST_TEST(run->trainer.position().begun.batches == begun_batches);
  }
  BOOST_TEST(within > 0u);
  if (!anew) BOOST_TEST(allocations->count == first);
  BOOST_TEST_MESSAGE(within << " of " << stops << " stops within a step");
  BOOST_TEST((run->state() == undisturbed.state()));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(begun_steps)

BOOST_DATA_TEST_CASE(a_run_stopped_between_any_two_batches_gives_the_bits_of_the_run_that_was_not,
                     boost::unit_test::data::make(ways()), how) {
  check_every_place(how, gpu::device::host());
}
BOOST_AUTO_TEST_CASE(so_it_does_on_cuda, on_gpu()) {
  for (const way& how : ways()) BOOST_TEST_CONTEXT(how) check_every_place(how, first_gpu());
}

BOOST_AUTO_TEST_CASE(a_trainer_that_is_stopped_goes_on_between_the_batches_of_a_step) {
  check_stops(gpu::device::host(), false);
}
BOOST_AUTO_TEST_CASE(so_does_another_from_its_checkpoints) { check_stops(gpu::device::host(), true); }
BOOST_AUTO_TEST_CASE(both_do_on_cuda, on_gpu()) {
  check_stops(first_gpu(), false);
  check_stops(first_gpu(), true);
}

BOOST_AUTO_TEST_CASE(a_step_of_other_batches_is_made_anew_and_both_sides_are_named) {
  const training_file data(split::rows);
  const auto options = begun_options();
  const auto begun = data.path("begun.h5"), before = data.path("before.h5");
  save_after(8, data, options, gpu::device::host(), 0, begun);
  save_after(6, data, options, gpu::device::host(), 0, before);
  auto bf16 = options;
  bf16.stage.precision = train::precision::bf16;
  for (const auto& [other, words] : {std::pair{begun_options(1, 48),
                                               "after 2 of the 3 batches of 16 rows of a step, and "
                                               "this run's has 1 of 48 rows: that step is made anew"},
                                     std::pair{begun_options(6, 8), "and this run's has 6 of 8 rows"},
                                     std::pair{bf16, "whose gradients are of float32, and this run's of bf16"}}) {
    whole_run run(data, other, gpu::device::host()), expected(data, other, gpu::device::host());
    const std::string said = run.trainer.resume(begun);
    BOOST_TEST(said.find(words) != std::string::npos, said);
    BOOST_TEST(run.trainer.position().begun.batches == 0u);
    BOOST_TEST(run.trainer.position().next_batch == 96 / other.stage.rows);
    BOOST_TEST(expected.trainer.resume(before).find("anew") == std::string::npos);
    check_same(finish(run), finish(expected), words);
    BOOST_CHECK_NO_THROW(train::check_checkpoint(begun, other));
  }
}

BOOST_AUTO_TEST_CASE(a_checkpoint_between_steps_forgets_a_step_that_the_trainer_had_begun) {
  const training_file data(split::rows);
  const auto options = begun_options();
  const auto begun = data.path("begun.h5"), before = data.path("before.h5");
  save_after(8, data, options, gpu::device::host(), 0, begun);
  save_after(6, data, options, gpu::device::host(), 0, before);
  whole_run run(data, options, gpu::device::host()), whole(data, options, gpu::device::host());
  run.trainer.resume(begun);
  std::stop_source stopped;
  stopped.request_stop();
  BOOST_TEST(!run.epoch(stopped.get_token()).complete);
  BOOST_TEST(run.trainer.position().begun.batches == 2u);
  run.trainer.resume(before);
  BOOST_TEST(run.trainer.position().begun.batches == 0u);
  check_same(finish(run), finish(whole), "from between two steps");
}

BOOST_AUTO_TEST_CASE(new_statistics_of_the_inputs_forget_it) {
  const training_file data(split::rows);
  const auto options = begun_options();
  const auto begun = data.path("begun.h5"), before = data.path("before.h5");
  save_after(8, data, options, gpu::device::host(), 0, begun);
  save_after(6, data, options, gpu::device::host(), 0, before);
  whole_run run(data, options, gpu::device::host()), expected(data, options, gpu::device::host());
  run.trainer.resume(begun);
  expected.trainer.resume(before);
  for (whole_run* const each : {&run, &expected}) each->trainer.normalise_from(each->planned.training);
  BOOST_TEST(run.trainer.position().begun.batches == 0u);
  check_same(finish(run), finish(expected), "with new statistics");
}

BOOST_AUTO_TEST_CASE(one_with_a_row_at_fault_is_made_anew_where_such_rows_end_the_run) {
  const training_file good(split::rows);
  whole_run straight(good, begun_options(), gpu::device::host());
  straight.epoch();
  training_file bad = good;
  const std::uint64_t row = straight.planned.training.row_order().row(0, 7 * split::batch_rows + 3);
  bad.x[row * training_file::columns + 3] = std::numeric_limits<float>::quiet_NaN();
  bad.write();
  auto skipping = begun_options();
  skipping.stage.non_finite = train::non_finite::skip;
  const auto file = good.path("begun.h5");
  save_after(8, bad, skipping, gpu::device::host(), 0, file);
  BOOST_TEST_REQUIRE(text_of(file).at("begun_step").at("bad_input") == 7 * split::batch_rows + 3);

  whole_run not_mended(bad, begun_options(), gpu::device::host());
  const std::string said =
      "it was stopped after 2 of the 3 batches of 16 rows of a step, and an input or the loss of a row of these is not "
      "finite, which ends this run: that step is made anew";
  BOOST_TEST(not_mended.trainer.resume(file) == said);
  BOOST_CHECK_EXCEPTION(not_mended.epoch(), train::error,
                        [&](const train::error& e) { return e.where().rows == std::vector<std::uint64_t>{row}; });
  good.write();
  whole_run mended(good, begun_options(), gpu::device::host());
  BOOST_TEST(mended.trainer.resume(file) == said);
  BOOST_TEST(mended.trainer.position().begun.batches == 0u);
  BOOST_TEST(mended.epoch().complete);
  BOOST_TEST((mended.state() == straight.state()));
}

BOOST_AUTO_TEST_CASE(another_top_k_within_the_first_step_is_said) {
  const training_file data(split::rows);
  const auto file = data.path("begun.h5");
  save_after(2, data, begun_options(), gpu::device::host(), 0, file);
  BOOST_TEST_REQUIRE(text_of(file).at("next_row") == 0);
  const auto said = [&](train::trainer_options options) {
    options.stage.top_k = 3;
    return whole_run(data, options, gpu::device::host()).trainer.resume(file);
  };
  BOOST_TEST(said(begun_options()) == "its top-k of the epoch under way was 5, and this run's is 3");
  BOOST_TEST(said(begun_options(6, 8)).find("top-k") == std::string::npos);  // the step is made anew: nothing is mixed
}

BOOST_AUTO_TEST_SUITE_END()
