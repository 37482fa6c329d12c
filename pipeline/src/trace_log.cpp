#include "trace_log.hpp"

#include <penstock/utf8.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace penstock::pipeline {
namespace {

constexpr std::size_t piece_bytes = std::size_t{64} << 10;
constexpr int entrance_thread = 1;  // no thread of this process has this number

double microseconds(clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

const char* name_of(trace_log::track where) {
  switch (where) {
    case trace_log::track::reader: return "reader";
    case trace_log::track::device: return "device";
    case trace_log::track::consumer: return "consumer";
    case trace_log::track::entrance: return "blocks that wait to be let in";
  }
  return "";
}

}  // namespace

trace_log::trace_log(std::size_t bytes)
    : capacity_(bytes / sizeof(record)), records_(std::make_unique<record[]>(capacity_)) {}

void trace_log::add(track where, const span& what) noexcept {
  const std::uint64_t number = next_.fetch_add(1, std::memory_order_relaxed);
  if (number >= capacity_) return;
  record& r = records_[number];
  r.what = what;
  r.where = where;
  r.thread = where == track::entrance ? entrance_thread : ::gettid();
  r.whole.store(true, std::memory_order_release);
}

std::uint64_t trace_log::dropped() const noexcept {
  const std::uint64_t all = next_.load(std::memory_order_relaxed);
  return all > capacity_ ? all - capacity_ : 0;
}

void trace_log::write(const std::function<void(std::string_view)>& take) const {
  std::vector<const record*> spans;
  std::map<int, track> threads;
  const std::size_t count = std::min<std::size_t>(next_.load(std::memory_order_relaxed), capacity_);
  for (std::size_t i = 0; i < count; ++i)
    if (records_[i].whole.load(std::memory_order_acquire)) {
      spans.push_back(&records_[i]);
      track& name = threads.emplace(records_[i].thread, records_[i].where).first->second;
      if (records_[i].where == track::consumer) name = track::consumer;  // it may read while it waits
    }
  // Longer ones first where two begin together: the outer span comes before those in it.
  std::stable_sort(spans.begin(), spans.end(), [](const record* a, const record* b) {
    return a->what.begin != b->what.begin ? a->what.begin < b->what.begin : a->what.end > b->what.end;
  });
  const int process = ::getpid();
  std::string text = fmt::format(
      "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"dropped spans\":\"{}\"}},\"traceEvents\":[\n", dropped());
  text +=
      nlohmann::json{{"ph", "M"}, {"pid", process}, {"name", "process_name"}, {"args", {{"name", "penstock"}}}}.dump();
  const auto add = [&](const nlohmann::json& event) {
    text += ",\n" + event.dump();
    if (text.size() < piece_bytes) return;
    take(text);
    text.clear();
  };
  for (const auto& [thread, where] : threads)
    add({{"ph", "M"},
         {"pid", process},
         {"tid", thread},
         {"name", "thread_name"},
         {"args", {{"name", name_of(where)}}}});
  for (const record* r : spans)
    add({{"ph", "X"},
         {"pid", process},
         {"tid", r->thread},
         {"name", as_utf8(r->what.name)},
         {"ts", microseconds(r->what.begin - zero_)},
         {"dur", microseconds(r->what.end - r->what.begin)},
         {"args", {{"block", r->what.block}, {"rows", r->what.rows}, {"epoch", r->what.epoch}}}});
  take(text + "\n]}\n");
}

}  // namespace penstock::pipeline
