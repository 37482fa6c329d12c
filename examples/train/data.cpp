#include "data.hpp"

#include "../common/dataset_missing.hpp"
#include "../common/numbers.hpp"
#include "data_checks.hpp"
#include "values.hpp"

#include <penstock/io/attribute.hpp>
#include <penstock/io/error.hpp>
#include <penstock/io/file.hpp>
#include <penstock/io/row_reader.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace examples {
namespace {

namespace io = penstock::io;
namespace pipeline = penstock::pipeline;
namespace train = penstock::train;

constexpr const char *default_test_x = "/test/images", *default_test_y = "/test/labels";
constexpr double most_classes = 1 << 20;
constexpr std::uint64_t runs_of_a_pool = 4;
constexpr std::uint64_t pool_bytes = 2 << 20;

/// Nothing where no dataset is named.
std::vector<io::location> in_all_files(const train_options& o, const std::string& dataset) {
  std::vector<io::location> all;
  if (dataset.empty()) return all;
  for (const std::string& pattern : o.files) {
    const auto found = io::datasets(pattern, dataset);
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

/// The first of `paths` that the file holds; empty where it holds none. Throws io::error where something is there that
/// does not open: what is damaged is not absent.
std::string first_there(const io::file& file, std::initializer_list<const char*> paths) {
  for (const char* path : paths) {
    if (file.contains(path)) return path;
    io::read_attribute(file.path(), path, "any");  // nothing of what is absent, and no error
  }
  return {};
}

std::string or_default(const std::string& given, const io::file& file, std::initializer_list<const char*> paths,
                       const char* option) {
  if (!given.empty()) return given;
  const std::string found = first_there(file, paths);
  if (!found.empty()) return found;
  throw dataset_missing(file, option);
}

/// Divides the training rows by the options' seed.
void split_off_validation(const train_options& o, training_data& data) {
  if (!o.test_x.empty() || !o.test_y.empty() || !o.test_x2.empty() || !o.test_weights.empty())
    throw std::invalid_argument(
        "--validation evaluates on a part of the training rows, and --test-x, --test-y and their like on other ones; "
        "leave one out. Rows that were kept back can be looked at later with --resume");
  pipeline::split how{.validation = o.validation, .seed = o.order.seed};
  data.training.group = in_all_files(o, o.validation_group);
  if (!data.training.group.empty()) how.group = "group";
  data.testing = data.training;
  data.testing->only = pipeline::validation_part(how);
  data.training.only = pipeline::training_part(how);
  data.testing_name = "validation";
}

/// Whether every file has the datasets of the default test set. Says so, and where the first has them alone.
bool have_default_test_set(const train_options& o, const io::file& first) {
  const auto lacks = [](const io::file& file) {
    for (const char* path : {default_test_x, default_test_y})
      if (first_there(file, {path}).empty()) return path;
    return "";
  };
  if (*lacks(first) != 0) return false;
  for (const std::string& pattern : o.files)
    for (const io::location& each : io::datasets(pattern, "/")) {
      if (each.file == first.path()) continue;
      const char* const path = lacks(io::file(each.file));
      if (*path == 0) continue;
      fmt::print("without a test set: {} has no {}; see --test-x, --test-y and --validation\n", each.file.string(),
                 path);
      return false;
    }
  fmt::print("test set: {} and {}, which are there; --test-x and --test-y name others\n", default_test_x,
             default_test_y);
  return true;
}

/// The default one is for runs that name no dataset of rows themselves.
void find_test_set(const train_options& o, const io::file& first, training_data& data) {
  std::string x = o.test_x, y = o.test_y;
  const auto is_named = [](const std::string& dataset) { return !dataset.empty(); };
  const std::array named{o.x, o.y, o.x2, o.test_x, o.test_y, o.test_x2};
  if (std::none_of(named.begin(), named.end(), is_named) && have_default_test_set(o, first))
    x = default_test_x, y = default_test_y;
  if (x.empty() != y.empty()) throw std::invalid_argument("a test set needs both --test-x and --test-y");
  if (x.empty()) {
    if (!o.test_weights.empty()) throw std::invalid_argument("--test-weights are for the rows of --test-x; name them");
    return;
  }
  if (o.x2.empty() != o.test_x2.empty())
    throw std::invalid_argument("a test set of two inputs needs --test-x2 beside --test-x and --test-y");
  data.testing = labelled_rows{.x = in_all_files(o, x),
                               .x2 = in_all_files(o, o.test_x2),
                               .y = in_all_files(o, y),
                               .weights = in_all_files(o, o.test_weights)};
}

/// A label, or a value for each output: what the loss takes, and how the rows are stored.
bool are_labels(const train_options& o, const std::vector<io::location>& y) {
  if (train::classes_of(loss_of(o), 2) == 0 || o.one_hot) return false;
  if (o.loss == "softmax") return true;
  const io::row_reader reader(y);
  return holds_texts(reader) || (values_of_a_row(y) == 1 && !penstock::is_floating(reader.element().element));
}

/// Which rows of the files a selection takes; empty where there is none.
std::vector<bool> taken_rows(const train_options& o, const labelled_rows& rows) {
  std::vector<bool> taken;
  if (!rows.only) return taken;
  auto source = pipeline::source{}.field("label", rows.y);
  if (!rows.group.empty()) source.field("group", rows.group);
  source.select(*rows.only).damaged(o.damaged);
  const auto opened = pipeline::read(source).open();
  taken.resize(io::row_reader(rows.y).rows());
  for (std::uint64_t n = 0; n < opened.rows(); ++n) taken[opened.row_order().row(0, n)] = true;
  return taken;
}

/// By how many times a class is rarer than the mean of those that are there; 1 for a class that is not there, of which
/// rows are evaluated on perhaps.
std::vector<double> balanced_weights(const std::vector<std::uint64_t>& counts, std::size_t classes) {
  double rows = 0, there = 0;
  for (const std::uint64_t count : counts) {
    rows += static_cast<double>(count);
    there += count > 0 ? 1 : 0;
  }
  std::vector<double> weights(classes, 1.0);
  for (std::size_t c = 0; c < counts.size(); ++c)
    if (counts[c] > 0) weights[c] = rows / (there * static_cast<double>(counts[c]));
  return weights;
}

/// Numbers that nobody meant for a class make many, which cost memory and time, and are learned of no row.
std::string empty_classes(const labelled_rows& rows, std::size_t classes, std::int64_t first) {
  const label_summary& labels = rows.labels;
  if (labels.kind != label_kind::numbers || !labels.names.empty() || labels.counts.empty()) return {};
  const auto filled = std::ranges::count_if(labels.counts, [](std::uint64_t each) { return each > 0; });
  const std::size_t empty = classes - static_cast<std::size_t>(filled);
  if (empty == 0) return {};
  const io::row_reader reader(rows.y);
  const auto& part = reader.segment_of(labels.row_of_largest);
  return fmt::format(
      "{} of {} classes {} no rows; the largest label, {}, is first at {}:{} row {}. Where labels count from 1, say "
      "--labels-from 1; where there are so many classes, --classes {}; --weights masks rows whose labels are none",
      empty, classes, empty == 1 ? "has" : "have", first + static_cast<std::int64_t>(labels.counts.size()) - 1,
      part.where.file.string(), part.where.dataset, labels.row_of_largest - part.first_row, classes);
}

/// Every label is looked at before anything is trained: a cast on the way would hide what does not fit.
void look_at_labels(const train_options& o, training_data& data) {
  const bool binary = o.loss != "softmax";
  data.targets = o.labels_from == 0 ? train::target::label : train::target::label_from_one;
  const double most = binary ? 2 : o.classes != 0 ? static_cast<double>(o.classes) : most_classes;
  const auto scan = [&](const labelled_rows& rows, double up_to, std::vector<bool> counted = {}) {
    const std::uint64_t damaged = skips_damaged(o) ? o.damaged.limit_rows : 0;
    return scan_labels({rows.y, rows.weights, o.labels_from, up_to, damaged, std::move(counted)});
  };
  label_summary& found = data.training.labels;
  found = scan(data.training, most, o.balanced_classes ? taken_rows(o, data.training) : std::vector<bool>{});
  if (found.kind != label_kind::numbers && o.labels_from != 0)
    throw std::invalid_argument(found.kind == label_kind::members
                                    ? "--labels-from is for labels that are numbers, and these are an enumeration, "
                                      "whose members are the classes"
                                    : "--labels-from is for labels that are numbers, and these are texts");
  const std::size_t classes = std::max<std::size_t>({2, found.counts.size(), binary ? 0 : o.classes});
  if (static_cast<double>(classes) > most)
    throw std::invalid_argument(fmt::format("there are {} different labels, and {} classes", classes, most));
  data.outputs = binary ? 1 : classes;
  if (!binary && o.classes == 0 && !o.balanced_classes)
    data.warning = empty_classes(data.training, classes, o.labels_from);
  if (o.balanced_classes) data.class_weights = balanced_weights(found.counts, classes);
  if (!data.testing) return;
  data.testing->labels = data.testing->only ? found : scan(*data.testing, static_cast<double>(classes));
}

pipeline::source source_of(const labelled_rows& rows, const training_data& data, const train_options& o) {
  pipeline::field_options label;
  if (data.targets == train::target::values)
    label.as = penstock::type::float32;
  else if (rows.labels.kind == label_kind::numbers)
    label.as = penstock::type::int32;
  auto source = pipeline::source{}.field("x", rows.x, {.as = penstock::type::float32}).field("label", rows.y, label);
  if (!rows.x2.empty()) source.field("x2", rows.x2, {.as = penstock::type::float32});
  if (!rows.weights.empty()) source.field("weight", rows.weights, {.as = penstock::type::float32});
  if (!rows.group.empty()) source.field("group", rows.group);
  if (rows.only) source.select(*rows.only);
  source.damaged(o.damaged);
  return source;
}

/// Makes one field of the rows' weights and of the mask of those that are intact: their product, under the mask's name.
pipeline::host_transform weights_and_mask(const std::string& mask) {
  const pipeline::transform_options options{.name = "weights of intact rows", .outputs = {{.name = mask}}};
  return pipeline::transform_host(options, [mask](const pipeline::block& block) {
    const auto weight = std::find_if(block.inputs().begin(), block.inputs().end(),
                                     [](const pipeline::block_field& field) { return field.name == "weight"; });
    const auto* const intact = block.input<float>(mask);
    auto* const to = block.output<float>(mask);
    for (std::size_t n = 0; n < block.rows(); ++n)
      to[n] = intact[n] == 0 ? 0 : static_cast<float>(value_at({.element = weight->element}, weight->data, n));
  });
}

/// Rows count alike where those of the other set have weights.
pipeline::host_transform equal_weights() {
  const pipeline::transform_options options{.name = "equal weights",
                                            .outputs = {{.name = "weight", .element = penstock::type::float32}}};
  return pipeline::transform_host(
      options, [](const pipeline::block& block) { std::fill_n(block.output<float>("weight"), block.rows(), 1.0F); });
}

}  // namespace

bool skips_damaged(const train_options& o) { return o.damaged.policy == pipeline::damage_policy::skip; }

bool have_weights(const training_data& data) {
  return !data.training.weights.empty() || (data.testing && !data.testing->weights.empty());
}

training_data find_data(const train_options& o) {
  const io::file first(io::datasets(o.files.front(), "/").front().file);
  training_data data;
  data.training.x = in_all_files(o, or_default(o.x, first, {"/train/images", "/x"}, "--x"));
  data.training.y = in_all_files(o, or_default(o.y, first, {"/train/labels", "/label"}, "--y"));
  data.training.x2 = in_all_files(o, o.x2);
  data.training.weights = in_all_files(o, o.weights);
  if (o.validation == 0 && !o.validation_group.empty())
    throw std::invalid_argument("--validation-group is for the rows that --validation keeps back; name their share");
  if (o.validation > 0)
    split_off_validation(o, data);
  else
    find_test_set(o, first, data);
  check_inputs(data);
  data.class_weights = o.class_weights;
  if (are_labels(o, data.training.y)) {
    look_at_labels(o, data);
    return data;
  }
  data.targets = train::target::values;
  data.outputs = values_of_a_row(data.training.y);
  check_values(o, data);
  if (o.labels_from != 0)
    throw std::invalid_argument(
        "--labels-from is for labels, one whole number for each row; these are values, and a yes is 1, a no 0");
  if (o.classes != 0 && o.classes != data.outputs)
    throw std::invalid_argument(
        fmt::format("--classes {}: a row of --y holds {} values, one for each class", o.classes, data.outputs));
  if (o.balanced_classes) throw std::invalid_argument("--class-weights balanced counts labels, and there are none");
  return data;
}

input_files inputs_of(const training_data& data) {
  input_files inputs;
  const auto add = [&](const labelled_rows& rows) {
    for (const auto* dataset : {&rows.x, &rows.x2, &rows.y, &rows.weights, &rows.group}) inputs.add(*dataset);
  };
  add(data.training);
  if (data.testing) add(*data.testing);
  return inputs;
}

pipeline::shuffled order_of(const training_data& data, const train_options& o) {
  pipeline::shuffled order = o.order;
  if (order.pool_rows != 0) return order;
  const auto opened = open_rows(data.training, data, 1, o);
  const std::size_t row_bytes = std::max<std::size_t>(1, io::row_reader(data.training.x).row_bytes());
  const std::uint64_t run = std::max<std::uint64_t>(1, opened.row_order().run_rows());
  const std::uint64_t wanted = std::max(runs_of_a_pool, pool_bytes / row_bytes / run);
  order.run_rows = run;
  order.pool_rows = std::min(wanted * run, std::max(opened.row_order().window_rows(), run));
  return order;
}

pipeline::description describe_rows(const labelled_rows& rows, const training_data& data, std::size_t batch_rows,
                                    const train_options& o) {
  // No batch is held beside the one in use: the rings are as small as can be.
  auto description = pipeline::read(source_of(rows, data, o), o.order) |
                     pipeline::batch_options{.rows = batch_rows, .last = pipeline::last_batch::pad, .held = 0} |
                     pipeline::transport_options{.threads = o.threads};
  if (data.targets != train::target::values)
    if (auto codes = numbered(rows.labels, data.training.labels, rows.y.front()))
      description = std::move(description) | std::move(*codes);
  if (skips_damaged(o) && !rows.weights.empty())
    description = std::move(description) | weights_and_mask(o.damaged.mask);
  if (&rows == &data.training && !skips_damaged(o) && rows.weights.empty() && have_weights(data))
    description = std::move(description) | equal_weights();
  return &rows == &data.training && !o.trace.empty() ? std::move(description) | pipeline::traced() : description;
}

pipeline::opened open_rows(const labelled_rows& rows, const training_data& data, std::size_t batch_rows,
                           const train_options& o) {
  return describe_rows(rows, data, batch_rows, o).open();
}

}  // namespace examples
