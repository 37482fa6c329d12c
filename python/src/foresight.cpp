#include "foresight.hpp"

#include <penstock/pipeline/error.hpp>

#include <exception>
#include <utility>

namespace penstock::python {

foresight::place foresight::begin(std::uint64_t epoch) noexcept { return std::exchange(now_, {++runs_, epoch}); }

void foresight::ask(std::uint64_t epoch) {
  now_.epoch = epoch;
  if (!is_spoiled(epoch)) return;
  const failure& of = *first_;
  throw pipeline::error(
      of.stage + " failed at " + of.rows + " of epoch " + std::to_string(of.epoch) + ": " + of.what.what(),
      {.stage = of.stage, .epoch = of.epoch, .rows = of.rows}, std::make_exception_ptr(of.what));
}

bool foresight::is_spoiled(std::uint64_t epoch) const noexcept {
  // A run that could not begin has a later number than the one that goes on; what was raised meanwhile counts for that.
  return first_ && first_->run >= now_.run && first_->epoch <= epoch;
}

void foresight::keep(std::uint64_t epoch, std::string stage, std::string rows, raised what) {
  if (is_spoiled(epoch)) return;
  first_.emplace(failure{now_.run, epoch, std::move(stage), std::move(rows), std::move(what)});
}

}  // namespace penstock::python
