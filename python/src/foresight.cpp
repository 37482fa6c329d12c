#include "foresight.hpp"

#include <penstock/pipeline/error.hpp>

#include <utility>

namespace penstock::python {

void foresight::begin(std::uint64_t epoch) noexcept {
  asked_ = epoch;
  forget();
}

void foresight::ask(std::uint64_t epoch) {
  asked_ = epoch;
  if (!is_spoiled(epoch)) return;
  const failure& of = *first_;
  throw pipeline::error(
      of.stage + " failed at " + of.rows + " of epoch " + std::to_string(of.epoch) + ": " + of.sentence,
      {.stage = of.stage, .epoch = of.epoch, .rows = of.rows}, of.cause);
}

void foresight::forget() noexcept {
  // An exception that goes takes its arrays with it, and these may call Python, which may come here.
  const std::optional<failure> gone = std::exchange(first_, std::nullopt);
}

void foresight::keep(std::uint64_t epoch, std::string stage, std::string rows, std::string sentence,
                     std::exception_ptr cause) {
  if (is_spoiled(epoch)) return;
  const std::optional<failure> later =
      std::exchange(first_, failure{epoch, std::move(stage), std::move(rows), std::move(sentence), std::move(cause)});
}

}  // namespace penstock::python
