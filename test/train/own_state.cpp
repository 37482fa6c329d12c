// State of a user's model that no checkpoint could hold is refused when the trainer is made, not at the first save.

#include <penstock/gpu/memory.hpp>
#include <penstock/train/trainer.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "training_file.hpp"

using namespace penstock;

namespace {

/// Shows state and gradients under these paths, each of one value.
struct shown_paths {
  std::vector<std::string> state, gradients{};
  float* values = nullptr;

  gpu::ledger plan(gpu::device) const {
    gpu::ledger items;
    items.add(gpu::memory_kind::device, "own: values", (state.size() + gradients.size()) * sizeof(float));
    return items;
  }
  void bind(gpu::stream_ref, const gpu::memory& memory) {
    values = reinterpret_cast<float*>(memory.at(gpu::memory_kind::device, "own: values").data());
  }
  void step(const pipeline::batch&, const train::step_place&) {}
  void visit_state(const train::state_visitor& visit) { show(visit, state, 0); }
  void visit_gradients(const train::state_visitor& visit) { show(visit, gradients, state.size()); }
  std::string name() const { return "paths"; }

  void show(const train::state_visitor& visit, const std::vector<std::string>& paths, std::size_t first) {
    for (const std::string& path : paths)
      visit({path, type::float32, {1}, reinterpret_cast<std::byte*>(values + first++)});
  }
};

train::trainer trainer_of(shown_paths& model, const gpu::stream& stream) {
  const auto functions = train::functions_of(model);
  return {stream,
          {.stage = {.optimizer = train::sgd{}, .rows = 64}},
          std::make_shared<gpu::memory>(stream.device(), train::plan(stream.device(), functions)),
          functions};
}

struct refused {
  shown_paths model;
  std::string says;
};
std::ostream& operator<<(std::ostream& out, const refused& r) { return out << r.says; }

const refused all_refused[] = {
    {{.state = {"/model/weight", "/model/bias", "/model/weight"}}, "'/model/weight' twice"},
    {{.state = {"/model/a/b", "/model/a-b", "/model/a"}}, "'/model/a' and under '/model/a/b'"},
    {{.state = {"/model/"}}, "'/model/'; names"},
    {{.state = {"/model/a//b"}}, "'/model/a//b'; names"},
    {{.state = {"/model/./a"}}, "'/model/./a'; names"},
    {{.state = {"/model/a"}, .gradients = {"/gradients/a", "/gradients/a"}}, "'/gradients/a' twice"},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(own_state)

BOOST_DATA_TEST_CASE(what_no_checkpoint_could_hold_is_refused_at_once, boost::unit_test::data::make(all_refused), one) {
  shown_paths model = one.model;
  const gpu::stream stream(gpu::device::host());
  BOOST_CHECK_EXCEPTION(trainer_of(model, stream), std::invalid_argument, [&](const std::invalid_argument& e) {
    return std::string(e.what()).find(one.says) != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(paths_that_only_begin_alike_are_kept_and_read_back) {
  const test::scratch_folder folder;
  shown_paths model{.state = {"/model/a", "/model/a-b", "/model/ab/c", "/model/ab/d", "/model/..a"}};
  const gpu::stream stream(gpu::device::host());
  auto trainer = trainer_of(model, stream);
  for (int i = 0; i < 5; ++i) model.values[i] = static_cast<float>(i + 1);
  trainer.save(folder.path("c.h5"));
  for (int i = 0; i < 5; ++i) model.values[i] = 0;
  trainer.resume(folder.path("c.h5"));
  for (int i = 0; i < 5; ++i) BOOST_TEST(model.values[i] == static_cast<float>(i + 1));
}

BOOST_AUTO_TEST_SUITE_END()
