#include "rehearsal.hpp"

#include <penstock/bytes.hpp>
#include <penstock/gpu/memory.hpp>
#include <penstock/gpu/stream.hpp>
#include <penstock/train/stage.hpp>

#include <algorithm>
#include <memory>

namespace examples {
namespace {

namespace gpu = penstock::gpu;
namespace train = penstock::train;

constexpr std::size_t most_width = 64, most_rows = 1024;
constexpr std::size_t driver_page_bytes = std::size_t{2} << 20;

void narrow(std::size_t& width) { width = std::min(width, most_width); }

/// The same layers, each narrower.
train::stage_options small_like(train::stage_options stage) {
  narrow(stage.model.inputs);
  narrow(stage.model.outputs);
  narrow(stage.model.pair.embedding);
  for (auto* const widths : {&stage.model.hidden, &stage.model.pair.head})
    for (std::size_t& width : *widths) narrow(width);
  if (!stage.class_weights.empty()) stage.class_weights.assign(stage.model.outputs, 1);
  stage.rows = std::min(stage.rows, most_rows);
  return stage;
}

/// Every kind of pass that a run makes, once: that loads its kernels, and records it.
void rehearse(train::stage& stage, std::size_t accumulate, const train::batch_rows& rows) {
  stage.observe(rows.x, rows.rows, rows.valid_rows);
  if (accumulate == 1) {
    stage.step(rows, 0);
  } else {
    for (int batch = 0; batch < 2; ++batch) stage.accumulate(rows);
    stage.update(0);
  }
  stage.evaluate(rows);
  stage.progress();
}

}  // namespace

std::size_t rehearsed_bytes(gpu::device device, const train::trainer_options& options) {
  constexpr const char *x_name = "rehearsal: inputs", *target_name = "rehearsal: targets";
  const train::stage_options stage = small_like(options.stage);
  const std::size_t value = penstock::size_of(stage.compute);
  gpu::ledger ledger = train::plan(device, stage);
  ledger.add(gpu::memory_kind::device, x_name, stage.rows * stage.model.inputs * value);
  ledger.add(gpu::memory_kind::device, target_name, stage.rows * stage.model.outputs * std::max(value, sizeof(int)));
  const std::size_t before = gpu::memory_of(device).free_bytes;
  const auto memory = std::make_shared<gpu::memory>(device, ledger);
  const gpu::stream stream(device);
  const auto zeros = [&](const char* name) {
    const auto bytes = memory->at(gpu::memory_kind::device, name);
    gpu::fill(stream, bytes.data(), 0, bytes.size());
    return bytes.data();
  };
  const void *const x = zeros(x_name), *const targets = zeros(target_name);
  train::stage small(stream, stage, memory);
  rehearse(small, options.accumulate,
           {.x = x,
            .x2 = options.x2.empty() ? nullptr : x,
            .targets = targets,
            .rows = stage.rows,
            .valid_rows = stage.rows});
  const std::size_t own = penstock::align_up(memory->bytes(gpu::memory_kind::device), driver_page_bytes);
  const std::size_t taken = before - std::min(before, gpu::memory_of(device).free_bytes);
  return taken - std::min(taken, own);
}

}  // namespace examples
