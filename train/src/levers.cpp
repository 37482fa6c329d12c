#include <penstock/train/levers.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>
#include <utility>

namespace penstock::train {
namespace {

std::size_t device_bytes(gpu::device d, const stage_options& options) {
  return plan(d, options).total(gpu::memory_kind::device);
}

std::vector<std::size_t> divisors(std::size_t number) {
  std::vector<std::size_t> small, large;
  for (std::size_t n = 1; n <= number / n; ++n) {
    if (number % n != 0) continue;
    small.push_back(n);
    if (n != number / n) large.push_back(number / n);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

/// The largest of `rows`, which rise, that fits; 0 where the first does not.
std::size_t largest_that_fits(stage_options options, const fits_budget& fits, const std::vector<std::size_t>& rows) {
  std::size_t fitting = 0, end = rows.size();  // rows[fitting - 1] fits, rows[end] does not
  const auto fits_with = [&](std::size_t n) {
    options.rows = rows[n];
    return fits(options);
  };
  if (end > 0 && fits_with(end - 1)) return rows.back();
  if (end > 0) --end;
  while (fitting < end) {
    const std::size_t middle = (fitting + end) / 2;
    if (fits_with(middle))
      fitting = middle + 1;
    else
      end = middle;
  }
  return fitting == 0 ? 0 : rows[fitting - 1];
}

/// Pulls a lever; false where it is pulled already, or frees nothing at `rows` rows.
bool pull(gpu::device d, lever which, stage_options& options, std::size_t rows) {
  stage_options with = options;
  with.rows = rows;
  stage_options without = with;
  switch (which) {
    case lever::recompute:
      if (options.recompute_layers == 0) with.recompute_layers = best_segment(d, with);
      break;
    case lever::offload_optimizer: with.offload.optimizer = true; break;
    case lever::offload_activations: with.offload.activations = true; break;
    default: return false;
  }
  if (device_bytes(d, with) >= device_bytes(d, without)) return false;
  options.recompute_layers = with.recompute_layers;
  options.offload = with.offload;
  return true;
}

/// What was asked for, with levers on top of it.
struct pulled_levers {
  stage_options stage{};
  std::vector<lever> used{};
};

/// In the order in which they are tried; the first has no lever.
std::vector<pulled_levers> sets_of_levers(gpu::device d, const stage_options& asked, std::size_t rows) {
  std::vector<pulled_levers> sets;
  const auto with = [&](pulled_levers pulled, lever next) {
    if (pull(d, next, pulled.stage, rows)) pulled.used.push_back(next);
    return pulled;
  };
  const auto add = [&](const pulled_levers& pulled) {
    const bool known =
        std::any_of(sets.begin(), sets.end(), [&](const pulled_levers& each) { return each.used == pulled.used; });
    if (!known) sets.push_back(pulled);
  };
  const pulled_levers as_asked{.stage = asked}, recomputed = with(as_asked, lever::recompute);
  const pulled_levers moments = with(recomputed, lever::offload_optimizer);
  add(as_asked);
  add(recomputed);
  add(moments);
  add(with(recomputed, lever::offload_activations));  // the moments may find no room in pinned memory
  add(with(moments, lever::offload_activations));
  // Of activations that wait three are on the device: a segment that is computed again may have more.
  add(with(as_asked, lever::offload_activations));
  add(with(with(as_asked, lever::offload_optimizer), lever::offload_activations));
  return sets;
}

/// What takes the least of the device, with one row, comes last.
void sort_by_bytes(gpu::device d, std::vector<pulled_levers>& sets) {
  std::vector<std::pair<std::size_t, pulled_levers>> sorted;
  for (pulled_levers& each : sets) {
    stage_options one_row = each.stage;
    one_row.rows = 1;
    sorted.emplace_back(device_bytes(d, one_row), std::move(each));
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (std::size_t n = 0; n < sets.size(); ++n) sets[n] = std::move(sorted[n].second);
}

std::string reason(lever which, const stage_options& chosen, std::size_t asked_rows, std::size_t floor) {
  const std::string too_much = fmt::format("batches of {} rows, the fewest before this, do not fit", floor);
  switch (which) {
    case lever::micro_batch:
    case lever::below_floor: {
      const std::string what = which == lever::micro_batch
                                   ? fmt::format("batches of {} rows do not fit the budget", asked_rows)
                                   : fmt::format("batches of {} rows do not fit with any other lever", floor);
      return fmt::format("{}: steps are made of {} batches of {} rows", what, asked_rows / chosen.rows, chosen.rows);
    }
    case lever::recompute:
      return fmt::format("{}: of every {} layers one output is kept, and backward computes the others again", too_much,
                         chosen.recompute_layers);
    case lever::offload_optimizer: return too_much + ": the optimizer's moments wait in pinned memory";
    case lever::offload_activations: return too_much + ": activations wait in pinned memory";
  }
  return {};
}

}  // namespace

std::string_view name_of(lever which) noexcept {
  constexpr std::array<std::string_view, 5> names{"micro-batch", "recompute", "offload optimizer",
                                                  "offload activations", "micro-batch below the floor"};
  return names[static_cast<std::size_t>(which)];
}

std::size_t largest_rows(const stage_options& options, const fits_budget& fits, std::size_t most) {
  stage_options tried = options;
  const auto fits_with = [&](std::size_t rows) {
    tried.rows = rows;
    return fits(tried);
  };
  std::size_t fitting = 0, next = 1;
  while (next <= most && fits_with(next)) {
    fitting = next;
    if (next == most) return most;
    next = next > most / 2 ? most : next * 2;
  }
  std::size_t too_many = std::min(next, most + 1);
  while (too_many - fitting > 1) {
    const std::size_t middle = fitting + (too_many - fitting) / 2;
    (fits_with(middle) ? fitting : too_many) = middle;
  }
  return fitting;
}

std::size_t largest_rows(gpu::device d, const stage_options& options, const gpu::budget& limits, std::size_t most) {
  return largest_rows(
      options, [&](const stage_options& o) { return plan(d, o).fits(limits); }, most);
}

std::size_t best_segment(gpu::device d, const stage_options& options) {
  stage_options tried = options;
  std::size_t best = 0, least = device_bytes(d, options);
  // Dense, LayerNorm, activation and dropout are the most that a hidden layer is made of. The last one is dense; where
  // there are two inputs, so are embeddings, and the join is a layer.
  const mlp_options& model = options.model;
  const std::size_t others = sides(model) == 2 ? 3 : 1;
  const std::size_t most = 4 * (model.hidden.size() + model.pair.head.size()) + others;
  for (tried.recompute_layers = 2; tried.recompute_layers <= most; ++tried.recompute_layers)
    if (const std::size_t bytes = device_bytes(d, tried); bytes < least) {
      least = bytes;
      best = tried.recompute_layers;
    }
  return best;
}

std::optional<fitted_step> fit_step(gpu::device d, const stage_options& asked, const fits_budget& fits,
                                    std::size_t floor_rows) {
  if (asked.rows == 0) throw std::invalid_argument("a step of 0 rows; it has one at least");
  const std::size_t floor = std::min(std::max<std::size_t>(floor_rows, 1), asked.rows);
  std::vector<std::size_t> above = divisors(asked.rows), below;
  const auto first_above = std::lower_bound(above.begin(), above.end(), floor);
  below.assign(above.begin(), first_above);
  above.erase(above.begin(), first_above);

  const auto settle = [&](const pulled_levers& pulled, std::size_t rows) {
    fitted_step step{.stage = pulled.stage, .accumulate = asked.rows / rows, .used = pulled.used};
    step.stage.rows = rows;
    if (rows < above.front())
      step.used.push_back(lever::below_floor);
    else if (rows < asked.rows)
      step.used.insert(step.used.begin(), lever::micro_batch);
    for (const lever each : step.used) step.reasons.push_back(reason(each, step.stage, asked.rows, above.front()));
    return step;
  };

  if (const std::size_t rows = largest_that_fits(asked, fits, above)) return settle({.stage = asked}, rows);
  std::vector<pulled_levers> sets = sets_of_levers(d, asked, above.front());
  for (const pulled_levers& each : std::span(sets).subspan(1))
    if (const std::size_t rows = largest_that_fits(each.stage, fits, above)) return settle(each, rows);
  // What waits in pinned memory may leave too little of it for as many rows as would fit without; and of those that let
  // as many rows fit, the fewest levers do.
  sort_by_bytes(d, sets);
  const pulled_levers* best = nullptr;
  std::size_t most = 0;
  for (const pulled_levers& each : sets) {
    const std::size_t rows = largest_that_fits(each.stage, fits, below.empty() ? above : below);
    if (rows == 0 || rows < most) continue;
    if (rows == most && std::pair(best->used.size(), best->used) <= std::pair(each.used.size(), each.used)) continue;
    best = &each;
    most = rows;
  }
  if (best == nullptr) return std::nullopt;
  return settle(*best, most);
}

std::optional<fitted_step> fit_step(gpu::device d, const stage_options& asked, const gpu::budget& limits,
                                    std::size_t floor_rows) {
  return fit_step(
      d, asked, [&](const stage_options& o) { return plan(d, o).fits(limits); }, floor_rows);
}

}  // namespace penstock::train
