#include "data.hpp"

#include <penstock/gpu/ledger.hpp>
#include <penstock/io/row_reader.hpp>
#include <penstock/pipeline/description.hpp>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace examples {
namespace {

namespace io = penstock::io;
namespace pipeline = penstock::pipeline;

std::vector<io::location> in_all_files(const libtorch_options& o, const std::string& dataset) {
  std::vector<io::location> all;
  for (const std::string& pattern : o.files) {
    const auto found = io::datasets(pattern, dataset);
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

void refuse_without_rows(const io::row_reader& inputs) {
  if (inputs.rows() > 0) return;
  const io::location& first = inputs.segments().front().where;
  throw std::invalid_argument(first.file.string() + ":" + first.dataset + ": it holds no rows; name another dataset");
}

[[noreturn]] void refuse_label(const pipeline::pipeline& labels, std::uint64_t row, double label, double most) {
  const auto place = labels.place_of("y", row).value_or(pipeline::row_place{});
  std::ostringstream sentence;
  sentence << place.file << ':' << place.dataset << ", row " << place.row << ": the label is " << label
           << "; labels are whole numbers from 0 to " << most;
  throw std::runtime_error(sentence.str());
}

struct label_summary {
  std::uint64_t largest = 0;
  std::vector<std::string> names{};  ///< where labels are texts of variable length: which are places in this list
};

/// "a.h5:/labels"
std::string place_of(const std::vector<io::location>& labels) {
  return labels.front().file.string() + ":" + labels.front().dataset;
}

/// From a pass over all labels. Throws for numbers that are none from 0 to `most`, and for labels of another kind than
/// `training`'s.
label_summary look_at_labels(const std::vector<io::location>& where, double most,
                             const label_summary* training = nullptr) {
  const auto source = pipeline::source{}.field("y", where, {.as = penstock::type::float64});
  auto labels = (pipeline::read(source) | pipeline::batch_options{.rows = 65536})
                    .build(penstock::gpu::device::host(), penstock::gpu::budget{});
  const auto& shape = labels.plan().fields.front().row_shape;  // [rows], or [rows, 1]
  if (std::any_of(shape.begin(), shape.end(), [](std::uint64_t extent) { return extent != 1; }))
    throw std::invalid_argument(place_of(where) + ": a label is one number in each row; name another dataset");
  label_summary found{.names = labels.class_names("y")};
  if (training && found.names.empty() != training->names.empty())
    throw std::invalid_argument(place_of(where) + ": its labels are " + (found.names.empty() ? "numbers" : "texts") +
                                ", and those of the training set " + (training->names.empty() ? "numbers" : "texts") +
                                "; name classes in the same way in both");
  double largest = 0;
  std::uint64_t row = 0;
  for (auto& batch : labels.epochs(0, 1)) {
    const double* const label = batch.field<double>("y");
    for (std::size_t n = 0; n < batch.rows(); ++n, ++row) {
      if (found.names.empty() && !(label[n] >= 0 && label[n] <= most && label[n] == std::floor(label[n])))
        refuse_label(labels, row, label[n], most);
      largest = std::max(largest, label[n]);
    }
  }
  found.largest = static_cast<std::uint64_t>(largest);
  return found;
}

/// The class of each text of the test labels: its place among those of the training set, whose classes these are.
/// Nothing where labels are numbers. Throws std::invalid_argument that names a text which is not among them.
std::vector<std::int64_t> classes_of_texts(const label_summary& testing, const label_summary& training,
                                           const std::vector<io::location>& where) {
  std::vector<std::int64_t> classes;
  for (const std::string& name : testing.names) {
    const auto found = std::lower_bound(training.names.begin(), training.names.end(), name);
    if (found == training.names.end() || *found != name)
      throw std::invalid_argument(place_of(where) + ": '" + name + "' is none of the " +
                                  std::to_string(training.names.size()) + " classes of the training set");
    classes.push_back(found - training.names.begin());
  }
  return classes;
}

pipeline::host_transform numbered(std::vector<std::int64_t> classes) {
  const pipeline::transform_options options{.name = "classes of texts",
                                            .outputs = {{.name = "y", .element = penstock::type::int64}}};
  return pipeline::transform_host(options, [classes = std::move(classes)](const pipeline::block& block) {
    const auto* const from = block.input<std::int32_t>("y");
    auto* const to = block.output<std::int64_t>("y");
    for (std::size_t n = 0; n < block.rows(); ++n) to[n] = classes[static_cast<std::size_t>(from[n])];
  });
}

}  // namespace

libtorch_data::libtorch_data(const libtorch_options& o) {
  const bool named = !o.x.empty();
  training = {in_all_files(o, named ? o.x : "/train/images"), in_all_files(o, named ? o.y : "/train/labels")};
  if (!o.test_x.empty() || !named)
    testing = labelled_rows{in_all_files(o, o.test_x.empty() ? "/test/images" : o.test_x),
                            in_all_files(o, o.test_y.empty() ? "/test/labels" : o.test_y)};

  const io::row_reader inputs(training.x);
  refuse_without_rows(inputs);
  row_shape = inputs.row_shape();
  scale = o.scale.value_or(inputs.element().element == penstock::type::uint8 ? 1.0 / 255 : 1.0);
  if (testing) {
    const io::row_reader test_inputs(testing->x);
    refuse_without_rows(test_inputs);
    if (test_inputs.row_shape() != row_shape)
      throw std::invalid_argument("the rows of the test inputs have another shape than those of the training inputs");
  }

  constexpr double most_classes = 65536;
  const double most = (o.classes != 0 ? static_cast<double>(o.classes) : most_classes) - 1;
  const label_summary labels = look_at_labels(training.y, most);
  if (labels.largest > static_cast<std::uint64_t>(most))
    throw std::invalid_argument(place_of(training.y) + ": there are " + std::to_string(labels.names.size()) +
                                " different texts, which are more than " +
                                std::to_string(static_cast<std::uint64_t>(most) + 1) + " classes");
  classes = o.classes != 0 ? o.classes : std::max<std::uint64_t>(2, labels.largest + 1);
  if (!testing) return;
  testing->classes =
      classes_of_texts(look_at_labels(testing->y, static_cast<double>(classes - 1), &labels), labels, testing->y);
}

input_files libtorch_data::inputs() const {
  input_files all;
  for (const labelled_rows* rows : {&training, testing ? &*testing : nullptr})
    if (rows) all.add(rows->x), all.add(rows->y);
  return all;
}

pipeline::pipeline open_batches(const labelled_rows& rows, bool training, const libtorch_data& data,
                                const libtorch_options& o, penstock::gpu::device device) {
  pipeline::field_options label;
  if (rows.classes.empty()) label.as = penstock::type::int64;
  const auto source = pipeline::source{}
                          .field("x", rows.x, {.as = penstock::type::float32, .scale = data.scale})
                          .field("y", rows.y, label);
  const pipeline::order_options order =
      training ? pipeline::order_options(pipeline::shuffled{.seed = o.seed}) : pipeline::sequential{};
  try {
    auto batches = pipeline::read(source, order) | pipeline::batch_options{.rows = o.batch_rows} |
                   pipeline::transport_options{.threads = o.threads};
    if (!rows.classes.empty()) batches = std::move(batches) | numbered(rows.classes);
    return batches.build(device, o.pipeline);
  } catch (const penstock::gpu::budget_error& e) {
    // "Device memory" is not --device-memory here: that is torch's, too.
    throw std::runtime_error(std::string(e.what()) +
                             " --rows-memory sets device memory for rows, --pinned-memory and --host-memory the other "
                             "kinds, each for the training set and again for the test set.");
  }
}

}  // namespace examples
