#include <penstock/train/memory_use.hpp>

#include <penstock/bytes.hpp>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <utility>

namespace penstock::train {
namespace {

using gpu::memory_kind;

/// The first prefix that an item's name has says what it is for.
constexpr std::array<std::pair<std::string_view, memory_category>, 19> prefixes{{
    {"train: parameters", memory_category::parameters},
    {"train: gradients of activations", memory_category::activations},
    {"train: gradients", memory_category::gradients},
    {"train: first moments", memory_category::optimizer},
    {"train: second moments", memory_category::optimizer},
    {"train: ring of moments", memory_category::optimizer},
    {"train: activations", memory_category::activations},
    {"train: ring of activations", memory_category::activations},
    {"train: inputs that wait", memory_category::activations},
    {"train: normalised input", memory_category::activations},
    {"train: scratch of layer", memory_category::activations},
    {"train: scores of rows", memory_category::activations},
    {"train: workspace", memory_category::workspaces},
    {"train: sums", memory_category::workspaces},
    {"train: OpenBLAS", memory_category::workspaces},
    {"train: reading of", memory_category::pipeline},
    {"train: room for", memory_category::pipeline},
    {"train:", memory_category::state},
    {"pipeline:", memory_category::pipeline},
}};

/// A value of /proc/self/status, which is in KiB; 0 where there is none.
std::size_t process_bytes(std::string_view name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(name)) continue;
    const auto digits = line.find_first_of("0123456789");
    return digits == std::string::npos ? 0 : static_cast<std::size_t>(std::stoull(line.substr(digits))) << 10;
  }
  return 0;
}

std::size_t sum(const std::vector<memory_use>& uses, memory_kind kind, std::size_t memory_use::*bytes) noexcept {
  std::size_t all = 0;
  for (const memory_use& use : uses)
    if (use.kind == kind) all += use.*bytes;
  return all;
}

std::size_t of_all(const memory_use& use) noexcept {
  return use.kind == memory_kind::host ? use.planned_bytes : use.allocated_bytes;
}

}  // namespace

std::string_view name_of(memory_category category) noexcept {
  constexpr std::array<std::string_view, 8> names{"parameters", "gradients", "optimizer", "activations",
                                                  "workspaces", "state",     "pipeline",  "model"};
  return names[static_cast<std::size_t>(category)];
}

memory_category category_of(std::string_view item) noexcept {
  for (const auto& [prefix, category] : prefixes)
    if (item.starts_with(prefix)) return category;
  return item.starts_with("io:") ? memory_category::pipeline : memory_category::model;
}

std::size_t memory_snapshot::planned(memory_kind kind) const noexcept {
  return sum(uses, kind, &memory_use::planned_bytes);
}
std::size_t memory_snapshot::allocated(memory_kind kind) const noexcept {
  return sum(uses, kind, &memory_use::allocated_bytes);
}
std::size_t memory_snapshot::used(memory_kind kind) const noexcept { return sum(uses, kind, &memory_use::used_bytes); }
std::size_t memory_snapshot::peak(memory_kind kind) const noexcept { return sum(uses, kind, &memory_use::peak_bytes); }

memory_monitor::memory_monitor(const gpu::memory& memory, std::size_t rows)
    : device_(memory.device()), rows_(std::max<std::size_t>(rows, 1)) {
  for (const gpu::ledger::item& item : memory.items().items()) {
    const memory_category category = category_of(item.name);
    memory_use* use = find(category, item.kind);
    if (use == nullptr) use = &uses_.emplace_back(memory_use{.category = category, .kind = item.kind});
    use->planned_bytes += align_up(item.bytes, gpu::ledger::alignment);
    if (item.kind != memory_kind::host)
      use->allocated_bytes += align_up(memory.at(item.kind, item.name).size(), gpu::ledger::alignment);
  }
  std::stable_sort(uses_.begin(), uses_.end(),
                   [](const memory_use& a, const memory_use& b) { return a.category < b.category; });
  for (memory_use& use : uses_) {
    const bool comes_later = use.category == memory_category::activations ||
                             (use.category == memory_category::pipeline && use.kind != memory_kind::host);
    if (!comes_later) use.used_bytes = use.peak_bytes = of_all(use);
  }
}

memory_use* memory_monitor::find(memory_category category, memory_kind kind) noexcept {
  const auto there = std::find_if(uses_.begin(), uses_.end(),
                                  [&](const memory_use& use) { return use.category == category && use.kind == kind; });
  return there != uses_.end() ? &*there : nullptr;
}

void memory_monitor::streams(const gpu::ledger& pipeline) noexcept {
  for (const memory_kind kind : {memory_kind::device, memory_kind::pinned})
    if (memory_use* const use = find(memory_category::pipeline, kind)) {
      use->used_bytes = pipeline.total(kind);
      use->peak_bytes = std::max(use->peak_bytes, use->used_bytes);
    }
}

void memory_monitor::batch(std::size_t rows) noexcept {
  if (rows == last_rows_) return;
  last_rows_ = rows;
  for (memory_use& use : uses_) {
    if (use.category != memory_category::activations) continue;
    use.used_bytes = rows >= rows_ ? of_all(use) : of_all(use) / rows_ * rows;
    use.peak_bytes = std::max(use.peak_bytes, use.used_bytes);
  }
}

memory_snapshot memory_monitor::now() const {
  return {.uses = uses_,
          .device_free_bytes = gpu::memory_of(device_).free_bytes,
          .process_bytes = process_bytes("VmRSS:"),
          .process_peak_bytes = process_bytes("VmHWM:")};
}

}  // namespace penstock::train
