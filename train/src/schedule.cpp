#include <penstock/train/schedule.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

namespace penstock::train {
namespace {

double cosine_factor(const schedule& s, std::uint64_t step, std::uint64_t steps_per_epoch) {
  const std::uint64_t last = s.epochs * steps_per_epoch;
  if (step >= last || last <= s.warmup_steps) return step >= last ? s.final_factor : 1;
  const double done = static_cast<double>(step - s.warmup_steps) / static_cast<double>(last - s.warmup_steps);
  return s.final_factor + (1 - s.final_factor) * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

}  // namespace

void check(const schedule& s) {
  const auto require = [](const char* what, std::uint64_t epochs, double factor) {
    if (epochs == 0)
      throw std::invalid_argument(fmt::format("a schedule of {} over 0 epochs; it takes 1 at least", what));
    if (!(factor >= 0 && std::isfinite(factor)))
      throw std::invalid_argument(fmt::format("a schedule of {} to {} times the rate; it is 0 or more", what, factor));
  };
  if (s.form == schedule::shape::cosine) require("a cosine", s.epochs, s.final_factor);
  if (s.form == schedule::shape::steps) require("steps", s.step_epochs, s.step_factor);
}

double factor(const schedule& s, std::uint64_t step, std::uint64_t steps_per_epoch) noexcept {
  if (step < s.warmup_steps) return static_cast<double>(step + 1) / static_cast<double>(s.warmup_steps);
  if (s.form == schedule::shape::cosine) return cosine_factor(s, step, steps_per_epoch);
  if (s.form == schedule::shape::steps)
    // Their product may be beyond 64 bits.
    return std::pow(s.step_factor, static_cast<double>(step / std::max<std::uint64_t>(1, steps_per_epoch) /
                                                       std::max<std::uint64_t>(1, s.step_epochs)));
  return 1;
}

schedule::shape parse_schedule(std::string_view name) {
  if (name == "constant") return schedule::shape::constant;
  if (name == "cosine") return schedule::shape::cosine;
  if (name == "steps") return schedule::shape::steps;
  throw std::invalid_argument(fmt::format("'{}' is no schedule; there are constant, cosine and steps", name));
}

}  // namespace penstock::train
