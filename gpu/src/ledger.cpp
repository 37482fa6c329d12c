#include <penstock/gpu/ledger.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace penstock::gpu {
namespace {

// The shortest text that a user can give back as a budget without falling short: rounded up, never down.
std::string at_least(std::size_t bytes) {
  if (bytes < 1_KiB) return fmt::format("{}B", bytes);
  if (bytes < 16_MiB) return fmt::format("{}KiB", (bytes + 1_KiB - 1) / 1_KiB);
  return fmt::format("{}MiB", (bytes + 1_MiB - 1) / 1_MiB);
}

std::string explain(const std::string& sentence, const ledger& items, const budget& limits, const budget& smallest) {
  std::string text = sentence + "\n" + to_text(items, limits) + "The smallest budget that would do:";
  for (const memory_kind kind : memory_kinds)
    text +=
        fmt::format("{} {} {}", kind == memory_kinds.front() ? "" : ",", name_of(kind), at_least(smallest.of(kind)));
  return text + ".";
}

}  // namespace

std::string_view name_of(memory_kind kind) noexcept {
  switch (kind) {
    case memory_kind::device: return "device";
    case memory_kind::pinned: return "pinned";
    case memory_kind::host: break;
  }
  return "host";
}

std::size_t& budget::of(memory_kind kind) noexcept {
  switch (kind) {
    case memory_kind::device: return device_bytes;
    case memory_kind::pinned: return pinned_bytes;
    case memory_kind::host: break;
  }
  return host_bytes;
}

std::size_t budget::of(memory_kind kind) const noexcept {
  budget copy = *this;
  return copy.of(kind);
}

void ledger::add(memory_kind kind, std::string name, std::size_t bytes, std::string detail) {
  const auto same = [&](const item& i) { return i.kind == kind && i.name == name; };
  if (std::any_of(items_.begin(), items_.end(), same))
    throw std::invalid_argument(fmt::format("the ledger has an item '{}' of {} memory already", name, name_of(kind)));
  items_.push_back({kind, std::move(name), bytes, std::move(detail)});
}

void ledger::add(const ledger& other) {
  ledger joined = *this;
  for (const item& i : other.items_) joined.add(i.kind, i.name, i.bytes, i.detail);
  *this = std::move(joined);
}

std::size_t ledger::total(memory_kind kind) const noexcept {
  std::size_t bytes = 0;
  for (const item& i : items_)
    if (i.kind == kind) bytes += align_up(i.bytes, alignment);
  return bytes;
}

bool ledger::fits(const budget& limits) const noexcept {
  return std::all_of(memory_kinds.begin(), memory_kinds.end(),
                     [&](memory_kind kind) { return total(kind) <= limits.of(kind); });
}

std::string to_text(const ledger& items, const budget& limits) {
  std::size_t width = std::string_view("item").size();
  for (const auto& i : items.items()) width = std::max(width, i.name.size());

  std::string text = fmt::format("{:<8}{:<{}}  {:>9}  detail\n", "memory", "item", width, "bytes");
  for (const memory_kind kind : memory_kinds) {
    for (const auto& i : items.items()) {
      if (i.kind != kind) continue;
      const std::string line =
          fmt::format("{:<8}{:<{}}  {:>9}  {}", name_of(kind), i.name, width, format_bytes(i.bytes), i.detail);
      text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    const std::size_t total = items.total(kind), limit = limits.of(kind);
    text += fmt::format("{:<8}{:<{}}  {:>9}  of {}", name_of(kind), "total", width, format_bytes(total),
                        format_bytes(limit));
    text += total > limit ? fmt::format(": {} too much\n", format_bytes(total - limit)) : "\n";
  }
  return text;
}

budget_error::budget_error(const std::string& sentence, ledger items, budget limits, budget smallest)
    : error(explain(sentence, items, limits, smallest)),
      items_(std::move(items)),
      limits_(limits),
      smallest_(smallest) {}

}  // namespace penstock::gpu
