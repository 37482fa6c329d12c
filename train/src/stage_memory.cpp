#include "stage_memory.hpp"

#include "host/backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

namespace penstock::train {
namespace {

using gpu::memory_kind;

// What OpenBLAS keeps for each thread that computes: its own panels of both factors, touched as far as products need.
constexpr std::size_t blas_bytes_per_thread = std::size_t{4} << 20;

template <class T>
void plan_moments(const stage_options& options, std::size_t parameters, gpu::ledger& ledger) {
  const std::size_t kept = moments(options.optimizer);
  const std::string owner(name_of(options.optimizer));
  const memory_kind kind = options.offload.optimizer ? memory_kind::pinned : memory_kind::device;
  if (kept > 0) ledger.add(kind, stage_items::first_moment, parameters * sizeof(T), owner);
  if (kept > 1) ledger.add(kind, stage_items::second_moment, parameters * sizeof(T), owner);
  if (kept == 0 || !options.offload.optimizer) return;
  const piece_ring ring = moment_pieces(options, parameters);
  ledger.add(memory_kind::device, stage_items::moment_ring, ring.ring_elements(kept) * sizeof(T),
             fmt::format("{} pieces of {} parameters, of {}", piece_ring::places, ring.piece, ring.pieces()));
}

/// The most rows that a layer is given at once: shared towers take both sides as rows of one layer.
std::size_t rows_at_once(const stage_options& options) {
  return options.model.pair.shared ? sides(options.model) * options.rows : options.rows;
}

template <class S>
gpu::ledger plan_typed(gpu::device d, const stage_options& options) {
  using T = arithmetic<S>;
  const network<S> model =
      make_network<S>(options.model, {.segment = options.recompute_layers, .offload = options.offload.activations});
  const std::size_t rows = options.rows, inputs = options.model.inputs, bytes = model.parameters() * sizeof(T);
  gpu::ledger ledger;
  model.plan(rows, ledger);
  plan_moments<T>(options, model.parameters(), ledger);
  if (!options.offload.activations)
    ledger.add(memory_kind::device, stage_items::input, sides(options.model) * rows * inputs * sizeof(S),
               fmt::format("{} rows of {}", sides(options.model) * rows, inputs));
  ledger.add(memory_kind::device, stage_items::mean, inputs * sizeof(T));
  ledger.add(memory_kind::device, stage_items::scale, inputs * sizeof(T));
  ledger.add(memory_kind::device, stage_items::moments, 3 * inputs * sizeof(double), "counts, means and squares");
  ledger.add(memory_kind::device, stage_items::scores, rows * sizeof(row_score<T>), "loss, weight, square and hits");
  if (!options.class_weights.empty())
    ledger.add(memory_kind::device, stage_items::class_weights, options.model.outputs * sizeof(T));
  if (options.confusion) {
    const std::size_t classes = classes_of(options.loss, options.model.outputs);
    ledger.add(memory_kind::device, stage_items::confusion, classes * classes * sizeof(std::uint64_t));
  }
  if (const std::size_t sums = column_sum_elements(d, rows_at_once(options), model.widest()); sums > 0)
    ledger.add(memory_kind::device, stage_items::column_sums, sums * sizeof(T));
  if (d.is_cuda() && options.workspace_bytes > 0)
    ledger.add(memory_kind::device, stage_items::workspace, options.workspace_bytes, "cuBLASLt's");
  if (needs_norm(options))
    ledger.add(memory_kind::device, stage_items::norm_sums, norm_pieces * sizeof(double), "for clipping and overflow");
  ledger.add(memory_kind::device, stage_items::state, sizeof(step_state));
  ledger.add(memory_kind::pinned, stage_items::progress, sizeof(step_state));
  // A row of the widest weights at least, a megabyte at most, so that checkpoints need few copies.
  ledger.add(memory_kind::pinned, stage_items::staging,
             std::min(std::max<std::size_t>(bytes, 4096), std::size_t{1} << 20), "for checkpoints and initial weights");
  if (d.is_host()) add_blas_buffers(options.threads, ledger);
  return ledger;
}

void check_class_weights(const stage_options& options) {
  const auto refuse = [](const std::string& what) { throw std::invalid_argument(what); };
  if (!std::holds_alternative<softmax_cross_entropy>(options.loss))
    refuse(fmt::format("class weights are for softmax cross-entropy, not {}", name_of(options.loss)));
  if (options.class_weights.size() != options.model.outputs)
    refuse(fmt::format("{} class weights for {} classes; give one for each", options.class_weights.size(),
                       options.model.outputs));
  for (const double weight : options.class_weights)
    if (!(weight >= 0 && std::isfinite(weight))) refuse(fmt::format("a class weight of {}; it is 0 or more", weight));
  if (std::all_of(options.class_weights.begin(), options.class_weights.end(), [](double w) { return w == 0; }))
    refuse("the weights of all classes are 0, so that no row would count");
}

/// Rows of one class against predictions of one: classes, or one sigmoid.
void check_confusion(const stage_options& options) {
  const bool of_classes = std::holds_alternative<softmax_cross_entropy>(options.loss);
  const std::size_t classes = classes_of(options.loss, options.model.outputs);
  if (classes == 0 || (!of_classes && options.model.outputs > 1))
    throw std::invalid_argument(
        fmt::format("a confusion matrix needs one class for each row; {} with {} outputs has none",
                    name_of(options.loss), options.model.outputs));
  if (classes > most_confused)
    throw std::invalid_argument(
        fmt::format("a confusion matrix of {} classes; it is kept for up to {}", classes, most_confused));
}

std::span<std::byte> at_if_there(const gpu::memory& memory, const char* name) {
  for (const auto& item : memory.items().items())
    if (item.kind == memory_kind::device && item.name == name) return memory.at(memory_kind::device, name);
  return {};
}

}  // namespace

// Products of two widths and of their bytes stay far within 64 bits.
constexpr std::size_t most_width = std::size_t{1} << 24;

/// Two inputs, or nothing that is for two.
void check_pair(const mlp_options& model) {
  const pair_options& pair = model.pair;
  if (sides(model) == 1) {
    if (pair.head.empty()) return;
    throw std::invalid_argument("layers of a head follow a join, and there is none; use hidden layers");
  }
  if (pair.embedding == 0 || std::find(pair.head.begin(), pair.head.end(), 0u) != pair.head.end())
    throw std::invalid_argument("a tower or head with a layer of 0 outputs; leave it out");
}

void check(const stage_options& options) {
  const auto refuse = [](const std::string& what) { throw std::invalid_argument(what); };
  if (options.model.inputs == 0) refuse("a model needs at least one input");
  if (options.model.outputs == 0) refuse("a model needs at least one output");
  check(options.loss, options.targets, options.model.outputs);
  if (!options.class_weights.empty()) check_class_weights(options);
  if (options.top_k == 0) refuse("top_k is 0; it is the number of outputs that are looked at, at least 1");
  if (options.confusion) check_confusion(options);
  std::vector<std::size_t> widths = options.model.hidden;
  widths.insert(widths.end(), {options.model.inputs, options.model.outputs});
  check_pair(options.model);
  if (sides(options.model) == 2) {
    widths.push_back(2 * options.model.pair.embedding);
    widths.insert(widths.end(), options.model.pair.head.begin(), options.model.pair.head.end());
  }
  if (const std::size_t widest = *std::max_element(widths.begin(), widths.end()); widest > most_width)
    refuse(fmt::format("a layer of {} values; at most {} are taken", widest, most_width));
  if (std::find(options.model.hidden.begin(), options.model.hidden.end(), 0u) != options.model.hidden.end())
    refuse("a hidden layer of 0 outputs; leave it out");
  if (!(options.model.dropout >= 0 && options.model.dropout < 1))
    refuse(fmt::format("a dropout of {}; it is a probability, at least 0 and below 1", options.model.dropout));
  if (options.rows == 0) refuse("a stage needs room for at least one row");
  if (options.compute != type::float32 && options.compute != type::float64)
    refuse(fmt::format("{} is no compute type; there are float32 and float64", name_of(options.compute)));
  if (!(options.clip_norm >= 0)) refuse(fmt::format("a norm to clip at is 0 or more, not {}", options.clip_norm));
  if (options.precision != precision::float32 && options.compute == type::float64)
    refuse(fmt::format("{} arithmetic is for float32, not float64", name_of(options.precision)));
  check(options.optimizer);
}

std::string_view name_of(precision p) noexcept {
  constexpr std::array<std::string_view, 4> names{"float32", "tf32", "bf16", "fp16"};
  return names[static_cast<std::size_t>(p)];
}

precision parse_precision(std::string_view name) {
  for (const auto p : {precision::float32, precision::tf32, precision::bf16, precision::fp16})
    if (name_of(p) == name) return p;
  throw std::invalid_argument(fmt::format("'{}' is no precision; there are float32, tf32, bf16 and fp16", name));
}

void check(gpu::device d, const stage_options& options) {
  check(options);
  if (d.is_host() && options.precision == precision::tf32)
    throw std::invalid_argument("the host has no tf32 arithmetic; compute in float32, or on a CUDA device");
  check_arithmetic(d, options.precision);
}

void add_blas_buffers(std::size_t threads, gpu::ledger& ledger) {
  const std::size_t computing = host::computing_threads(threads);
  ledger.add(memory_kind::host, stage_items::blas, computing * blas_bytes_per_thread,
             fmt::format("{} threads", computing));
}

gpu::ledger plan(gpu::device d, const stage_options& options) {
  check(d, options);
  if (options.precision == precision::bf16) return plan_typed<bfloat16>(d, options);
  if (options.precision == precision::fp16) return plan_typed<float16>(d, options);
  return options.compute == type::float64 ? plan_typed<double>(d, options) : plan_typed<float>(d, options);
}

bool needs_norm(const stage_options& options) noexcept {
  return options.clip_norm > 0 || options.precision == precision::fp16;
}

piece_ring moment_pieces(const stage_options& options, std::size_t parameters) {
  return plan_pieces(parameters, moments(options.optimizer), size_of(options.compute), options.offload.ring_bytes);
}

backend_memory workspaces(const gpu::memory& memory) {
  return {.workspace = at_if_there(memory, stage_items::workspace),
          .column_sums = at_if_there(memory, stage_items::column_sums)};
}

}  // namespace penstock::train
