#include "data.hpp"

#include <penstock/gpu/ledger.hpp>
#include <penstock/io/row_reader.hpp>
#include <penstock/pipeline/description.hpp>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <string>

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

/// The largest label, from a pass over all of them.
std::uint64_t largest_label(const std::vector<io::location>& where, double most) {
  const auto source = pipeline::source{}.field("y", where, {.as = penstock::type::float64});
  auto labels = (pipeline::read(source) | pipeline::batch_options{.rows = 65536})
                    .build(penstock::gpu::device::host(), penstock::gpu::budget{});
  const auto& shape = labels.plan().fields.front().row_shape;  // [rows], or [rows, 1]
  if (std::any_of(shape.begin(), shape.end(), [](std::uint64_t extent) { return extent != 1; }))
    throw std::invalid_argument(where.front().file.string() + ":" + where.front().dataset +
                                ": a label is one number in each row; name another dataset");
  double largest = 0;
  std::uint64_t row = 0;
  for (auto& batch : labels.epochs(0, 1)) {
    const double* const label = batch.field<double>("y");
    for (std::size_t n = 0; n < batch.rows(); ++n, ++row) {
      if (!(label[n] >= 0 && label[n] <= most && label[n] == std::floor(label[n])))
        refuse_label(labels, row, label[n], most);
      largest = std::max(largest, label[n]);
    }
  }
  return static_cast<std::uint64_t>(largest);
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
  const std::uint64_t largest = largest_label(training.y, most);
  classes = o.classes != 0 ? o.classes : std::max<std::uint64_t>(2, largest + 1);
  if (testing) largest_label(testing->y, static_cast<double>(classes - 1));
}

input_files libtorch_data::inputs() const {
  input_files all;
  for (const labelled_rows* rows : {&training, testing ? &*testing : nullptr})
    if (rows) all.add(rows->x), all.add(rows->y);
  return all;
}

pipeline::pipeline open_batches(const labelled_rows& rows, bool training, const libtorch_data& data,
                                const libtorch_options& o, penstock::gpu::device device) {
  const auto source = pipeline::source{}
                          .field("x", rows.x, {.as = penstock::type::float32, .scale = data.scale})
                          .field("y", rows.y, {.as = penstock::type::int64});
  const pipeline::order_options order =
      training ? pipeline::order_options(pipeline::shuffled{.seed = o.seed}) : pipeline::sequential{};
  try {
    return (pipeline::read(source, order) | pipeline::batch_options{.rows = o.batch_rows} |
            pipeline::transport_options{.threads = o.threads})
        .build(device, o.pipeline);
  } catch (const penstock::gpu::budget_error& e) {
    // "Device memory" is not --device-memory here: that is torch's, too.
    throw std::runtime_error(std::string(e.what()) +
                             " --rows-memory sets device memory for rows, --pinned-memory and --host-memory the other "
                             "kinds, each for the training set and again for the test set.");
  }
}

}  // namespace examples
