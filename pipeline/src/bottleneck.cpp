#include "mean_workers.hpp"
#include "rate_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace penstock::pipeline {
namespace {

constexpr double small_share = 0.05;  // of the time: below, the consumer is not held back
constexpr double near_limit = 0.85;
constexpr double much_rest = 0.4;  // of what readers take: neither reads nor decodes

double per_second(std::uint64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / seconds : 0;
}

const stage_report* find(const pipeline_report& r, const std::string& name) {
  const auto found = std::find_if(r.stages.begin(), r.stages.end(), [&](const stage_report& stage) {
    return stage.name == name || stage.name == name + " (issued)";
  });
  return found == r.stages.end() ? nullptr : &*found;
}

std::string at_work(const stage_report& stage) {
  const std::string workers = fmt::format("{:.3g}", mean_workers(stage));
  return fmt::format("{:.1f} of {} {} at work{}", stage.mean_at_work, workers, workers == "1" ? "worker" : "workers",
                     stage.waited_for == "a processor" ? ", which wait for processors" : "");
}

std::string of_reading(const pipeline_report& r) {
  const stage_report& readers = *find(r, "read");
  const double rate = per_second(r.reading.stored_bytes, r.seconds);
  if (!r.limits.storage_bytes_per_second) return fmt::format("reading: {}, {}", rate_text(rate), at_work(readers));
  const double limit = *r.limits.storage_bytes_per_second;
  const std::string sentence =
      fmt::format("reading: {} of the {} that the storage gives", rate_text(rate), rate_text(limit));
  if (rate >= near_limit * limit) return sentence + "; more threads will not help";
  return fmt::format("{}, {}", sentence, at_work(readers));
}

/// Readers do not decode one chunk together: where chunks are few and large, all but one wait, and more of them would,
/// too.
std::string of_decoding(const pipeline_report& r) {
  const stage_report& readers = *find(r, "read");
  const double stored = per_second(r.reading.stored_bytes, r.seconds);
  if (r.reading.decoded_bytes == 0)
    return fmt::format("converting: {} of stored bytes, {}; more processors would help", rate_text(stored),
                       at_work(readers));
  const double accounted = r.reading.read_seconds + r.reading.decode_seconds + r.reading.library_seconds;
  const double rest = readers.busy_seconds > 0 ? 1 - accounted / readers.busy_seconds : 0;
  std::string advice = "more processors would help";
  if (rest > much_rest)
    advice = fmt::format(
        "{:.0f} % of their time they wait for a chunk that another decodes, or copy rows out of one: smaller chunks of "
        "whole rows would help",
        100 * rest);
  return fmt::format("decoding: {} of rows out of {} of stored bytes, {}; {}",
                     rate_text(per_second(r.reading.decoded_bytes, r.seconds)), rate_text(stored), at_work(readers),
                     advice);
}

std::string of_link(const pipeline_report& r) {
  const stage_report* copies = find(r, "copy");
  const double rate = copies ? per_second(copies->bytes, r.seconds) : 0;
  if (!r.limits.link_bytes_per_second) return fmt::format("the link: {} are copied", rate_text(rate));
  return fmt::format("the link: {} of the {} that it carries", rate_text(rate),
                     rate_text(*r.limits.link_bytes_per_second));
}

/// What keeps rows from the consumer's stream on the device is not timed one by one: copies far from their limit are
/// not it, where something else comes after them.
std::string of_device(const pipeline_report& r) {
  std::vector<std::string> others;
  constexpr std::string_view issued = " (issued)";
  for (const stage_report& stage : r.stages)
    if (stage.name.ends_with(issued) && stage.name != "copy (issued)")
      others.push_back(stage.name.substr(0, stage.name.size() - issued.size()));
  const stage_report* copies = find(r, "copy");
  const double limit = r.limits.link_bytes_per_second.value_or(0);
  const double rate = copies ? per_second(copies->bytes, r.seconds) : 0;
  if (others.empty() || (limit > 0 && rate >= near_limit * limit)) return of_link(r);
  const std::string after = fmt::format("{}", fmt::join(others, ", "));
  if (limit <= 0) return fmt::format("copies ({}), or what comes after them on the device: {}", rate_text(rate), after);
  return fmt::format("what comes after the copies on the device: {}; the link carries {} of {}", after, rate_text(rate),
                     rate_text(limit));
}

/// How much of the time a stage was at work, or of its limit it came to; nothing where neither is known.
std::optional<double> use_of(const pipeline_report& r, const std::string& name) {
  const auto share_of_limit = [&](std::uint64_t bytes, const std::optional<double>& limit) {
    return limit && *limit > 0 ? static_cast<double>(bytes) / r.seconds / *limit : 0;
  };
  const bool reads = name == "read" || name == "decode";
  const stage_report* stage = find(r, reads ? "read" : name);
  if (!stage || stage->workers == 0) return std::nullopt;
  if (name == "copy" && !r.limits.link_bytes_per_second) return std::nullopt;  // its thread only issues it
  if (name == "copy") return share_of_limit(stage->bytes, r.limits.link_bytes_per_second);
  const double at_work = stage->mean_at_work / mean_workers(*stage);
  return reads ? std::max(at_work, share_of_limit(r.reading.stored_bytes, r.limits.storage_bytes_per_second)) : at_work;
}

/// Whether the link is what holds a run up, whatever waits were charged to: copies come near its limit, and reading no
/// nearer to that of the storage. Then neither threads nor processors would make the run faster. What the consumer
/// holds is its own doing.
bool link_is_the_limit(const pipeline_report& r, const std::string& worst) {
  const double link = use_of(r, "copy").value_or(0);
  const double storage = r.limits.storage_bytes_per_second.value_or(0);
  const double reading = storage > 0 ? per_second(r.reading.stored_bytes, r.seconds) / storage : 0;
  return worst != "consumer" && link >= near_limit && link >= reading;
}

/// Past their good sizes, slots and rings do not grow with the budget.
std::string advice_on(const pipeline_report& r, const char* memory) {
  const auto use = std::ranges::find(r.memory, memory, &memory_use::what);
  return use != r.memory.end() && use->cut_short ? "; a larger budget would help" : "";
}

std::string of_stage(const pipeline_report& r, const std::string& name) {
  if (name == "read") return of_reading(r);
  if (name == "decode") return of_decoding(r);
  if (name == "libhdf5") return "libhdf5: it reads for one thread at a time; the fields below say why it is needed";
  if (name == "copy") return of_link(r);
  if (name == "beginning") return "the beginning of the run: no block was let in yet; longer runs hide it";
  if (name == "slots") return "slots: all are in use" + advice_on(r, "slots");
  if (name == "consumer") return "rows that the consumer still holds" + advice_on(r, "rings");
  if (name == "handing over") return "handing over: threads are woken late; another processor would help";
  if (name == "order") return "the order of blocks: one takes longer than those after it";
  const stage_report* stage = find(r, name);
  if (!stage) return name;
  if (stage->bytes == 0) return fmt::format("{}: {}", name, at_work(*stage));
  std::string sentence =
      fmt::format("{}: {}, {}", name, rate_text(per_second(stage->bytes, r.seconds)), at_work(*stage));
  const stage_report& readers = *find(r, "read");
  if (stage->workers < readers.workers && !stage->workers_are_all &&
      stage->mean_at_work > near_limit * mean_workers(*stage))
    sentence += "; a higher concurrency would help";
  return sentence;
}

}  // namespace

std::string bottleneck_of(const pipeline_report& r) {
  if (r.seconds <= 0) return "nothing was consumed yet";
  const double waited = r.consumer_wait_seconds / r.seconds, stalled = r.device_stall.seconds / r.seconds;
  if (waited + stalled < small_share)
    return fmt::format("the consumer: batches were ready {:.1f} % of the time", 100 * (1 - waited - stalled));
  if (stalled > waited)
    return fmt::format("{}; the consumer's stream waited {:.0f} % of the time on the device", of_device(r),
                       100 * std::min(stalled, 1.0));
  std::map<std::string, double> by_stage{{"handing over", 0}};  // where nothing was charged
  for (const time_charge& wait : r.consumer_waits) by_stage[wait.stage] += wait.seconds;
  const auto worst = std::max_element(by_stage.begin(), by_stage.end(),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
  const bool link = link_is_the_limit(r, worst->first);
  const std::string stage = link ? "copy" : worst->first;
  const std::string share_of_waits = stage == worst->first ? "for this" : "charged to " + worst->first;
  const std::string sentence =
      fmt::format("{}; the consumer waited {:.0f} % of the time, {:.0f} % {}", of_stage(r, stage), 100 * waited,
                  100 * worst->second / r.seconds, share_of_waits);
  // Who is at work for more of the time than that stage, and for most of it, is what holds both up.
  const double worked = 1 - waited - stalled;
  if (const auto use = use_of(r, stage); use && worked > *use && worked >= 0.5)
    return fmt::format("the consumer: at work {:.0f} % of the time; beside it {}", 100 * worked, sentence);
  return sentence;
}

}  // namespace penstock::pipeline
