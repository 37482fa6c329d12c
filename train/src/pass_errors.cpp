#include "pass_errors.hpp"

#include <penstock/train/error.hpp>

#include <fmt/format.h>

#include <exception>
#include <new>
#include <optional>
#include <stdexcept>

namespace penstock::train {

void pass_errors::rethrow() const {
  if (callers_) throw;
  try {
    throw;
  } catch (const pipeline::error&) {
    throw;
  } catch (const pipeline::stopped&) {
    throw;
  } catch (const error&) {
    throw;
  } catch (const std::logic_error&) {
    if (mine_) throw;  // the call was wrong, whatever the rows
  } catch (...) {
  }
  const std::exception_ptr cause = std::current_exception();
  std::optional<pipeline::error> placed;
  try {
    pipeline::failed_work work = work_;
    if (step_) work.name = fmt::format("{} {}", work.stage, *step_);
    placed = data_.failure(at_, cause, work);
  } catch (const std::bad_alloc&) {  // the cause is worth more than its place
  }
  if (placed) throw *std::move(placed);
  std::rethrow_exception(cause);
}

}  // namespace penstock::train
