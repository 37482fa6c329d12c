#include "data_checks.hpp"

#include "../common/numbers.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <vector>

namespace examples {
namespace {

namespace io = penstock::io;
namespace train = penstock::train;

void check_input(const std::vector<io::location>& x) {
  require_numbers(x, "a model takes numbers; texts are good for labels (--y)");
  if (x.empty()) return;
  const io::row_reader reader(x);
  if (reader.row_bytes() == 0 && reader.rows() > 0)
    throw io::error("its rows hold no value, and a model needs at least one input; name another dataset",
                    {.file = x.front().file.string(), .dataset = x.front().dataset});
}

void check_weights(const std::vector<io::location>& weights) {
  require_numbers(weights, "weights of rows are numbers");
  if (weights.empty()) return;
  if (const std::size_t values = values_of_a_row(weights); values != 1)
    throw io::error(fmt::format("a row has {} values, and what it counts is one number", values),
                    {.file = weights.front().file.string(), .dataset = weights.front().dataset});
}

void check_inputs(const labelled_rows& rows) {
  check_input(rows.x);
  check_input(rows.x2);
  check_weights(rows.weights);
}

}  // namespace

void check_inputs(const training_data& data) {
  check_inputs(data.training);
  if (data.testing) check_inputs(*data.testing);
}

void check_values(const train_options& o, const training_data& data) {
  const std::string why = fmt::format("{} takes numbers; texts are labels of --loss softmax or binary",
                                      o.one_hot ? "--one-hot" : "--loss " + o.loss);
  require_numbers(data.training.y, why);
  if (data.testing) require_numbers(data.testing->y, why);
}

void check_evaluation(const train_options& o, const training_data& data) {
  const bool accuracy = o.stop.watched == train::quantity::accuracy;
  const char* const option = o.confusion                  ? "--confusion"
                             : o.stop.patience > 0        ? "--patience"
                             : o.keep_best                ? "--keep-best"
                             : !o.best_checkpoint.empty() ? "--best-checkpoint"
                             : accuracy                   ? "--watch"
                                                          : nullptr;
  if (option != nullptr && !data.testing)
    throw std::invalid_argument(
        fmt::format("{} needs rows to evaluate on: name a test set with --test-x and --test-y, or keep a --validation "
                    "share of the training rows",
                    option));
  if (accuracy && train::classes_of(loss_of(o), data.outputs) == 0)
    throw std::invalid_argument(fmt::format("--watch accuracy is for classes, and --loss {} is of values", o.loss));
}

}  // namespace examples
