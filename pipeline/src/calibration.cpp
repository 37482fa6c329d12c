#include <penstock/pipeline/calibration.hpp>

#include "opened_impl.hpp"
#include "schedule.hpp"
#include "trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace penstock::pipeline {
namespace {

using namespace penstock::literals;
using seconds = std::chrono::duration<double>;

constexpr std::array block_bytes_tried{512_KiB, 1_MiB, 2_MiB, 4_MiB, 8_MiB, 16_MiB};
constexpr double slices =
    32;                    // of the time: looks, seven blocks and three numbers of slots twice, and what begins them
constexpr int passes = 2;  // the better of each counts: what a neighbour on the machine takes is not the size's fault
constexpr double for_blocks = 0.7;            // of the time
constexpr double as_fast = 0.97;              // of the fastest
constexpr std::size_t least_blocks = 8;       // in a slice: the rate of fewer says little
constexpr std::size_t most_pinned = 192_MiB;  // of a try: pinning more takes longer than trying

struct candidate {
  transport_options wish{};
  pipeline_plan plan{};
  double bytes_per_second = 0;
};

/// One item of each kind, which every candidate's fit in: tries take turns in it.
gpu::ledger room_for(const std::vector<candidate>& some) {
  gpu::ledger room;
  for (const gpu::memory_kind kind : {gpu::memory_kind::device, gpu::memory_kind::pinned}) {
    std::size_t most = 0;
    for (const candidate& c : some) most = std::max(most, c.plan.ledger.total(kind));
    if (most > 0) room.add(kind, "pipeline: calibration", most);
  }
  return room;
}

/// One calibration: what it may take, and where it has come to.
class calibrator {
 public:
  calibrator(const description& what, gpu::device d, const gpu::budget& limits, const gpu::ledger& taken,
             const calibration_options& how)
      // A description holds as much as a weight for each row: it is not copied.
      : source_(std::shared_ptr<const description::parts>(std::shared_ptr<void>(), &what.contents())),
        device_(d),
        limits_(limits),
        taken_(taken),
        began_(clock::now()),
        time_(std::chrono::duration_cast<clock::duration>(seconds(how.seconds))) {}

  calibration find();

 private:
  std::optional<candidate> planned(const transport_options& wish) const;
  std::vector<candidate> other_blocks(const candidate& own) const;
  std::vector<candidate> other_slots(const candidate& own) const;
  bool measure(candidate& own, std::vector<candidate>& others, clock::time_point until);
  candidate choose_block(candidate own, calibration& found);
  candidate choose_slots(candidate own, calibration& found);
  std::string too_slow() const;

  std::size_t block_bytes(const candidate& c) const { return c.plan.block_rows * source_.shape.row_bytes; }
  calibration::tried tried_of(const candidate& c) const {
    return {block_bytes(c), c.plan.slots, c.plan.slots * c.plan.slot_bytes, c.bytes_per_second};
  }

  opened::impl source_;
  gpu::device device_;
  gpu::budget limits_;
  gpu::ledger taken_;
  clock::time_point began_;
  clock::duration time_;
  run_position at_;  ///< each try reads on where the one before ended, as a run does
};

/// Nothing where it does not fit.
std::optional<candidate> calibrator::planned(const transport_options& wish) const try {
  candidate c{wish, source_.plan(device_, limits_, taken_, wish)};
  if (device_.is_cuda() && c.plan.ledger.total(gpu::memory_kind::pinned) > most_pinned) return std::nullopt;
  return c;
} catch (const gpu::budget_error&) {
  return std::nullopt;
}

std::vector<candidate> calibrator::other_blocks(const candidate& own) const {
  std::vector<candidate> others;
  for (const std::size_t bytes : block_bytes_tried) {
    transport_options wish = own.wish;
    wish.block_bytes = bytes;
    std::optional<candidate> c = planned(wish);
    const auto is_same = [&](const candidate& other) { return other.plan.block_rows == c->plan.block_rows; };
    if (c && !is_same(own) && std::ranges::none_of(others, is_same)) others.push_back(std::move(*c));
  }
  return others;
}

std::vector<candidate> calibrator::other_slots(const candidate& own) const {
  std::vector<candidate> others;
  for (const std::size_t slots : {own.plan.slots / 2, 2 * own.plan.slots}) {
    transport_options wish = own.wish;
    wish.slots = slots;
    std::optional<candidate> c = slots > 0 ? planned(wish) : std::nullopt;
    if (c && c->plan.block_rows == own.plan.block_rows && c->plan.slots == slots) others.push_back(std::move(*c));
  }
  return others;
}

/// Tries the plan's own and the others, as far as the time goes. False where the time is too short for its own.
bool calibrator::measure(candidate& own, std::vector<candidate>& others, clock::time_point until) {
  const clock::duration slice = std::chrono::duration_cast<clock::duration>(time_ / slices);
  std::vector<candidate> all = others;
  all.push_back(own);
  const auto whole = std::make_shared<gpu::memory>(device_, room_for(all), source_.parts->faults);
  const auto rate_of = [&](const candidate& c) {
    return stream_for(slice, source_, c.plan, c.wish,
                      std::make_shared<gpu::memory>(whole, whole->items(), c.plan.ledger), at_);
  };
  // The first look meets a cold device and fresh memory: it says about how much comes in a slice, and no more.
  double fastest = rate_of(own).value_or(0);
  const auto can_be_told = [&](const candidate& c) {
    const std::size_t blocks = std::max(least_blocks, 2 * c.plan.threads);
    return static_cast<double>(block_bytes(c) * blocks) <= fastest * to_seconds(slice);
  };
  const auto try_once_more = [&](candidate& c) {
    if (clock::now() + 2 * slice > until) return;
    c.bytes_per_second = std::max(c.bytes_per_second, rate_of(c).value_or(0));
    fastest = std::max(fastest, c.bytes_per_second);
  };
  for (int pass = 0; pass < passes; ++pass) {
    if (fastest > 0) try_once_more(own);
    if (own.bytes_per_second == 0 || !can_be_told(own)) return false;
    for (candidate& c : others)
      if (can_be_told(c)) try_once_more(c);
  }
  std::erase_if(others, [](const candidate& c) { return c.bytes_per_second == 0; });
  return true;
}

std::string calibrator::too_slow() const {
  return fmt::format("not measured: rows come too slowly, or there are too few, to tell sizes apart within {:.1f} s",
                     to_seconds(time_));
}

/// The smallest of those that are about as fast as the fastest: all of them from small to large.
const candidate& best_of(const std::vector<candidate>& all) {
  const double most = std::ranges::max(all, {}, &candidate::bytes_per_second).bytes_per_second;
  return *std::ranges::find_if(all, [&](const candidate& c) { return c.bytes_per_second >= as_fast * most; });
}

/// "measured: 1.0 MiB 3.10 GB/s, 2.0 MiB 3.90 GB/s; ..."
template <class Name>
std::string reason_of(const std::vector<calibration::tried>& some, Name name) {
  std::string text = "measured: ";
  for (const calibration::tried& one : some)
    text += fmt::format("{}{} {:.2f} GB/s", &one == some.data() ? "" : ", ", name(one), one.bytes_per_second / 1e9);
  return text + "; the smallest within 3 % of the fastest";
}

candidate calibrator::choose_block(candidate own, calibration& found) {
  const auto keep = [&](std::string why) {
    found.block_reason = std::move(why);
    return own;
  };
  if (own.wish.block_bytes != 0) return keep("as asked for");
  std::vector<candidate> all = other_blocks(own);
  if (all.empty()) return keep("no other size suits rows, chunks, pool and budgets");
  const auto until = began_ + std::chrono::duration_cast<clock::duration>(time_ * for_blocks);
  if (!measure(own, all, until) || all.empty()) return keep(too_slow());
  all.push_back(own);
  std::ranges::sort(all, {}, [](const candidate& c) { return c.plan.block_rows; });
  for (const candidate& c : all) found.blocks.push_back(tried_of(c));
  found.block_reason = reason_of(found.blocks, [](const auto& one) { return format_bytes(one.block_bytes); });
  return best_of(all);
}

candidate calibrator::choose_slots(candidate own, calibration& found) {
  const auto keep = [&](std::string why) {
    found.slots_reason = std::move(why);
    return own;
  };
  if (own.wish.slots != 0) return keep("as asked for");
  if (own.plan.slots == 0) return keep("none are needed: blocks land where they are consumed");
  if (device_.is_host() && source_.rows.is_pooled())
    return keep("they are the pool, and the next one as far as the budget goes");
  std::vector<candidate> all = other_slots(own);
  if (all.empty()) return keep("no other number suits pool and budgets");
  if (!measure(own, all, began_ + time_) || all.empty()) return keep(too_slow());
  all.push_back(own);
  std::ranges::sort(all, {}, [](const candidate& c) { return c.plan.slots; });
  for (const candidate& c : all) found.slots.push_back(tried_of(c));
  found.slots_reason = reason_of(
      found.slots, [](const auto& one) { return fmt::format("{} ({})", one.slots, format_bytes(one.slots_bytes)); });
  return best_of(all);
}

calibration calibrator::find() {
  calibration found;
  const transport_options& wish = source_.parts->transport;
  candidate best{wish, source_.plan(device_, limits_, taken_, wish)};
  const batch_options& batches = source_.parts->batch;
  if (source_.rows.rows() == 0 || schedule::batches_per_epoch(source_.rows, batches.rows, batches.last) == 0) {
    found.block_reason = found.slots_reason = "not measured: an epoch has no rows";
  } else {
    best = choose_block(std::move(best), found);
    best = choose_slots(std::move(best), found);
  }
  found.transport = best.wish;
  return found;
}

}  // namespace

calibration calibrate(const description& what, gpu::device d, const gpu::budget& limits, const gpu::ledger& taken,
                      const calibration_options& how) {
  constexpr double most_seconds = 3600;
  if (!(how.seconds > 0) || how.seconds > most_seconds)
    throw std::invalid_argument(fmt::format(
        "a calibration of {} seconds is asked for; it takes more than 0, and {} at most", how.seconds, most_seconds));
  return calibrator(what, d, limits, taken, how).find();
}

std::string to_text(const calibration& c) {
  return fmt::format("blocks: {}\nslots: {}", c.block_reason, c.slots_reason);
}

}  // namespace penstock::pipeline
