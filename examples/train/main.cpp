// Trains a multilayer perceptron on HDF5 datasets of any size within a fixed budget of memory.

#include "../common/program.hpp"
#include "../common/signals.hpp"
#include "checkpoint_checks.hpp"
#include "data_checks.hpp"
#include "outputs.hpp"
#include "results.hpp"
#include "training_program.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

int main(int argc, char** argv) {
  CLI::App app(
      "Trains a multilayer perceptron on HDF5 datasets of any size within a fixed budget of memory: all of it is "
      "planned, shown and allocated before the first step.",
      "penstock-train");
  examples::train_options o;
  examples::add_train_options(app, o);
  int stopped_by = 0;
  const int code = examples::run_program(app, argc, argv, [&] {
    examples::stop_on_signal signals("penstock-train: stopped before the first step; there is nothing to keep");
    examples::check_initial(o);
    const auto data = examples::find_data(o);
    examples::check_outputs(o, examples::inputs_of(data));
    o.order = examples::order_of(data, o);
    examples::check_evaluation(o, data);
    auto session = examples::plan_session(o, data);
    if (o.plan_only) examples::check_resumed(o, session);
    examples::print_plan(session, o.budget, o.plan_only);
    if (!data.warning.empty()) fmt::print(stderr, "penstock-train: warning: {}\n", data.warning);
    if (o.plan_only) return;
    examples::training_program program(o, data, std::move(session));
    signals.begin();
    program.run(signals.token());
    stopped_by = signals.signal();
    program.report();
  });
  return examples::end_program(code == 0 && stopped_by != 0 ? 128 + stopped_by : code);
}
