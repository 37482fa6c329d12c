// The same stage on the host and on CUDA: the host's results, checked elsewhere against references, are the
// expectation.
#include "device_stage.hpp"
#include "gpu.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>

using namespace penstock;
using penstock::test::device_stage;
using penstock::test::distance;
using penstock::test::rows_of;

namespace {

struct shape {
  std::size_t inputs;
  std::vector<std::size_t> hidden;
  std::size_t classes, rows;
};
std::ostream& operator<<(std::ostream& out, const shape& s) {
  return out << s.inputs << " inputs, " << s.hidden.size() << " hidden layers, " << s.classes << " classes, " << s.rows
             << " rows";
}
const std::vector<shape> shapes{{784, {512, 256}, 10, 256},
                                {17, {33}, 100, 65},
                                {5, {}, 3, 1},
                                {64, {64, 64, 64}, 1000, 300},
                                {20, {33, 12}, 7, 1500}};

template <class T>
void compare(const shape& s, const train::optimizer_options& optimizer, double tolerance,
             train::activation kind = train::activation::relu, double dropout = 0) {
  const rows_of<T> data(2 * s.rows, s.inputs, s.classes);
  const train::stage_options options{
      .model = {.inputs = s.inputs, .hidden = s.hidden, .outputs = s.classes, .activation = kind, .dropout = dropout},
      .optimizer = optimizer,
      .rows = s.rows,
      .compute = type_of<T>,
      .seed = 8};
  device_stage<T> host(gpu::device::host(), options, data), cuda(test::first_gpu(), options, data);
  for (auto* each : {&host, &cuda}) {
    each->stage.set_normalisation({std::vector<double>(s.inputs, 0.1), std::vector<double>(s.inputs, 1.25)});
    each->accumulate(0, s.rows, s.rows);
    each->accumulate(s.rows, s.rows, s.rows - s.rows / 3);
  }
  BOOST_TEST(distance(host.item("train: gradients"), cuda.item("train: gradients")) < tolerance);
  const auto on_host = host.stage.progress(), on_cuda = cuda.stage.progress();
  BOOST_TEST(std::abs(on_host.running.loss_sum - on_cuda.running.loss_sum) < tolerance * on_host.running.loss_sum);
  BOOST_TEST(on_host.running.correct == on_cuda.running.correct);
  BOOST_TEST(on_host.running.rows == on_cuda.running.rows);
  for (auto* each : {&host, &cuda}) each->stage.update(1e-3);
  BOOST_TEST(cuda.stage.progress().steps == 1u);
  BOOST_TEST(distance(host.item("train: parameters"), cuda.item("train: parameters")) < 20 * tolerance);
  for (auto* each : {&host, &cuda}) {
    each->stage.reset();
    each->evaluate(s.rows);
  }
  BOOST_TEST(std::abs(host.stage.progress().running.loss_sum - cuda.stage.progress().running.loss_sum) <
             100 * tolerance * host.stage.progress().running.loss_sum);
}

/// Gradients, metrics and confusion of rows with weights; values are the targets unless there are none.
void compare_loss(const rows_of<double>& data, const train::loss_options& loss, train::target targets,
                  std::size_t width, const std::vector<double>& values, const std::vector<double>& weights) {
  const std::size_t rows = weights.size();
  const bool classes = std::holds_alternative<train::softmax_cross_entropy>(loss);
  train::stage_options options{.model = {.inputs = data.inputs, .hidden = {12}, .outputs = width},
                               .loss = loss,
                               .targets = targets,
                               .top_k = 2,
                               .confusion = classes,
                               .rows = rows,
                               .compute = type::float64};
  if (classes) options.class_weights.assign(width, 0.75);
  device_stage<double> host(gpu::device::host(), options, data, values, weights);
  device_stage<double> cuda(test::first_gpu(), options, data, values, weights);
  BOOST_TEST_CONTEXT(train::to_text(loss) << ", " << train::name_of(targets) << ", " << width << " outputs") {
    for (auto* each : {&host, &cuda}) {
      each->stage.evaluate(each->weighted_rows());
      each->stage.accumulate(each->weighted_rows());
    }
    BOOST_TEST(distance(host.item("train: gradients"), cuda.item("train: gradients")) < 1e-13);
    const train::metrics expected = host.stage.progress().running, found = cuda.stage.progress().running;
    BOOST_TEST(std::abs(expected.loss() - found.loss()) < 1e-13);
    BOOST_TEST(std::abs(expected.rmse() - found.rmse()) < 1e-13);
    BOOST_TEST(std::abs(expected.weight_sum - found.weight_sum) < 1e-12);
    BOOST_TEST(expected.rows == found.rows);
    BOOST_TEST(expected.correct == found.correct);
    BOOST_TEST(expected.in_top_k == found.in_top_k);
    BOOST_TEST(host.stage.confusion().counts == cuda.stage.confusion().counts, boost::test_tools::per_element());
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(devices)

BOOST_AUTO_TEST_CASE(cuda_agrees_with_the_host_in_float32, test::on_gpu()) {
  for (const shape& s : shapes) {
    BOOST_TEST_CONTEXT(s) {
      // A large epsilon: with a small one the first step is the gradient's sign, whose rounding is as large as the
      // step.
      compare<float>(s, train::adamw{.epsilon = 1e-2}, 5e-6);
      compare<float>(s, train::sgd{.momentum = 0.9, .nesterov = true, .weight_decay = 0.1}, 5e-6);
    }
  }
}

BOOST_AUTO_TEST_CASE(cuda_agrees_with_the_host_in_float64, test::on_gpu()) {
  for (const shape& s : shapes) {
    BOOST_TEST_CONTEXT(s) {
      compare<double>(s, train::adamw{.epsilon = 1e-2}, 1e-13);
      compare<double>(s, train::sgd{.momentum = 0}, 1e-13);
    }
  }
}

BOOST_AUTO_TEST_CASE(gradients_of_many_rows_are_right_in_any_workspace_and_repeat_their_bits, test::on_gpu()) {
  const std::size_t rows = 16384;
  const rows_of<float> data(rows, 256, 10);
  train::stage_options options{
      .model = {.inputs = data.inputs, .hidden = {512}, .outputs = 10}, .rows = rows, .seed = 4};
  const auto gradients_on = [&](gpu::device device) {
    device_stage<float> on(device, options, data);
    on.accumulate(0, rows, rows);
    return on.item("train: gradients");
  };
  const std::vector<float> on_host = gradients_on(gpu::device::host());
  for (const std::size_t kib : {0, 64, 1024, 4096, 8192, 32768, 131072}) {
    options.workspace_bytes = kib << 10;
    const std::vector<float> on_cuda = gradients_on(test::first_gpu());
    BOOST_TEST(distance(on_host, on_cuda) < 1e-5, kib << " KiB of workspace");
    BOOST_TEST((gradients_on(test::first_gpu()) == on_cuda), kib << " KiB of workspace");
  }
}

BOOST_AUTO_TEST_CASE(cuda_agrees_with_the_host_in_each_activation, test::on_gpu()) {
  const shape s{17, {33, 20}, 7, 65};
  for (const auto kind :
       {train::activation::tanh, train::activation::sigmoid, train::activation::identity, train::activation::gelu})
    compare<double>(s, train::adamw{.epsilon = 1e-2}, 1e-13, kind);
}

BOOST_AUTO_TEST_CASE(cuda_agrees_with_the_host_in_each_loss, test::on_gpu()) {
  constexpr std::size_t rows = 70;
  for (const std::size_t width : {1u, 3u, 40u}) {
    const rows_of<double> data(rows, 9, std::max<std::size_t>(width, 2));
    std::vector<double> values(rows * width), weights(rows);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>((i * 37) % 11) / 10;
    for (std::size_t i = 0; i < rows; ++i) weights[i] = 0.5 * static_cast<double>(i % 3);
    std::vector<double> shares(rows * width, 0.0);
    for (std::size_t i = 0; i < rows; ++i) shares[i * width + i % width] = 1;
    for (const train::loss_options& loss :
         {train::loss_options(train::binary_cross_entropy{.positive_weight = 2}),
          train::loss_options(train::mean_squared_error{}), train::loss_options(train::huber{.delta = 0.5})})
      compare_loss(data, loss, train::target::values, width, values, weights);
    if (width == 1) continue;
    const train::softmax_cross_entropy softmax{.label_smoothing = 0.1};
    compare_loss(data, softmax, train::target::values, width, shares, weights);
    compare_loss(data, softmax, train::target::label, width, {}, weights);
  }
}

BOOST_AUTO_TEST_CASE(cuda_drops_the_values_that_the_host_drops, test::on_gpu()) {
  compare<double>({17, {33, 20}, 7, 65}, train::adamw{.epsilon = 1e-2}, 1e-13, train::activation::relu, 0.4);
}

BOOST_AUTO_TEST_CASE(tf32_products_are_near_those_of_float32_and_not_the_same, test::on_gpu()) {
  const rows_of<float> data(256, 784, 10);
  train::stage_options options{.model = {.inputs = 784, .hidden = {512, 256}, .outputs = 10}, .rows = 256};
  const auto gradients = [&](train::precision p) {
    options.precision = p;
    device_stage<float> s(test::first_gpu(), options, data);
    s.accumulate(0, 256, 256);
    return s.item("train: gradients");
  };
  const auto exact = gradients(train::precision::float32);
  const double tf32 = distance(exact, gradients(train::precision::tf32));
  BOOST_TEST(tf32 > 1e-6);
  BOOST_TEST(tf32 < 1e-2);
}

BOOST_AUTO_TEST_CASE(cuda_normalises_rows_of_layers_as_the_host_does, test::on_gpu()) {
  const rows_of<double> data(65, 17, 7);
  const train::stage_options options{.model = {.inputs = 17,
                                               .hidden = {33, 20},
                                               .outputs = 7,
                                               .activation = train::activation::gelu,
                                               .layer_norm = true},
                                     .rows = 65,
                                     .compute = type::float64};
  device_stage<double> host(gpu::device::host(), options, data), cuda(test::first_gpu(), options, data);
  for (auto* each : {&host, &cuda}) {
    each->accumulate(0, 40, 40);
    each->accumulate(40, 25, 25);
  }
  BOOST_TEST(distance(host.item("train: gradients"), cuda.item("train: gradients")) < 1e-13);
}

BOOST_AUTO_TEST_CASE(small_floats_on_cuda_are_near_the_host_and_give_the_same_bits_twice, test::on_gpu()) {
  for (const shape& s : shapes) {
    BOOST_TEST_CONTEXT(s) {
      const rows_of<float> data(2 * s.rows, s.inputs, s.classes);
      train::stage_options options{.model = {.inputs = s.inputs, .hidden = s.hidden, .outputs = s.classes},
                                   .optimizer = train::sgd{.momentum = 0.9},
                                   .rows = s.rows,
                                   .seed = 8};
      const auto run = [&](gpu::device device) {
        device_stage<float> stage(device, options, data);
        if (options.precision == train::precision::fp16) stage.stage.set_loss_scale(1024);
        stage.accumulate(0, s.rows, s.rows);
        stage.accumulate(s.rows, s.rows, s.rows - s.rows / 3);
        auto values = stage.item("train: gradients");
        stage.stage.update(0.01);
        stage.accumulate(0, s.rows, s.rows);
        const auto second = stage.item("train: gradients");
        values.insert(values.end(), second.begin(), second.end());
        return values;
      };
      for (const auto precision : {train::precision::bf16, train::precision::fp16}) {
        options.precision = precision;
        const auto on_cuda = run(test::first_gpu());
        BOOST_TEST(distance(run(gpu::device::host()), on_cuda) < 0.02);
        BOOST_TEST(test::same_bits<float>(run(test::first_gpu()), on_cuda));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(cuda_clips_as_the_host_does, test::on_gpu()) {
  const rows_of<double> data(65, 17, 7);
  const train::stage_options options{.model = {.inputs = 17, .hidden = {33}, .outputs = 7},
                                     .optimizer = train::sgd{.momentum = 0},
                                     .rows = 65,
                                     .compute = type::float64,
                                     .clip_norm = 1e-3};
  device_stage<double> host(gpu::device::host(), options, data), cuda(test::first_gpu(), options, data);
  for (auto* each : {&host, &cuda}) {
    each->accumulate(0, 65, 65);
    each->stage.update(1);
  }
  BOOST_TEST(distance(host.item("train: parameters"), cuda.item("train: parameters")) < 1e-13);
}

BOOST_AUTO_TEST_CASE(cuda_observes_the_statistics_of_the_host, test::on_gpu()) {
  const rows_of<float> data(300, 70, 4);
  const train::stage_options options{.model = {.inputs = 70, .hidden = {}, .outputs = 4}, .rows = 300};
  device_stage<float> host(gpu::device::host(), options, data), cuda(test::first_gpu(), options, data);
  for (auto* each : {&host, &cuda}) {
    each->observe(300);
    each->observe(123);
  }
  const auto expected = host.stage.observed(), seen = cuda.stage.observed();
  BOOST_TEST(distance(expected.mean, seen.mean) < 1e-13);
  BOOST_TEST(distance(expected.deviation, seen.deviation) < 1e-13);
}

BOOST_AUTO_TEST_CASE(a_constant_column_has_no_deviation_on_cuda, test::on_gpu()) {
  rows_of<double> data(300, 40, 4);
  for (std::size_t at = 0; at < data.x.size(); ++at) data.x[at] = at % 40 == 0 ? -1e9 / 3 : 0.1;
  const train::stage_options options{
      .model = {.inputs = 40, .hidden = {}, .outputs = 4}, .rows = 300, .compute = type::float64};
  device_stage<double> s(test::first_gpu(), options, data);
  for (const std::size_t rows : {300u, 10u, 123u}) s.observe(rows);
  const train::input_statistics observed = s.stage.observed();
  for (std::size_t j = 0; j < 40; ++j) {
    BOOST_TEST(observed.mean[j] == (j == 0 ? -1e9 / 3 : 0.1));
    BOOST_TEST(observed.deviation[j] == 0.0);
  }
}

BOOST_AUTO_TEST_CASE(cuda_names_the_first_row_at_fault_and_changes_nothing, test::on_gpu()) {
  rows_of<float> data(128, 20, 4);
  data.x[100 * 20 + 19] = std::numeric_limits<float>::quiet_NaN();
  data.x[77 * 20 + 3] = std::numeric_limits<float>::infinity();
  data.labels[90] = 4;
  data.labels[99] = -1;
  const train::stage_options options{.model = {.inputs = 20, .hidden = {8}, .outputs = 4}, .rows = 128};
  device_stage<float> s(test::first_gpu(), options, data);
  const auto before = s.item("train: parameters");
  s.accumulate(0, 128, 128);
  s.stage.update(1e-3);
  BOOST_TEST(s.stage.progress().bad_input == 77u);
  BOOST_TEST(s.stage.progress().bad_label == 90u);
  BOOST_TEST(test::same_bits<float>(s.item("train: parameters"), before));
}

BOOST_AUTO_TEST_SUITE_END()
