#pragma once

#include <cstdint>
#include <string_view>

namespace penstock::train {

/// How the learning rate changes over a run: a function of the step's number alone, so that a resumed run goes on with
/// it.
struct schedule {
  enum class shape : std::uint8_t {
    constant,
    cosine,  ///< half a cosine from the full rate to final_factor of it, over `epochs`
    steps    ///< times step_factor after every step_epochs
  };
  shape form = shape::constant;
  std::uint64_t warmup_steps = 0;  ///< the rate rises linearly over so many steps first
  std::uint64_t epochs = 10;
  double final_factor = 0;
  std::uint64_t step_epochs = 10;
  double step_factor = 0.1;
};

/// Throws std::invalid_argument with the value that is outside its range: numbers of epochs from 1, factors finite and
/// 0 or more. What its form does not use is not looked at.
void check(const schedule& s);

/// What the learning rate is multiplied with at step `step`, counted from 0.
double factor(const schedule& s, std::uint64_t step, std::uint64_t steps_per_epoch) noexcept;
/// "constant", "cosine" or "steps"; throws std::invalid_argument for another word.
schedule::shape parse_schedule(std::string_view name);

}  // namespace penstock::train
