#include "pass_errors.hpp"

#include <penstock/train/error.hpp>

#include <fmt/format.h>

#include <exception>
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
  pipeline::failed_work work = work_;
  if (step_) work.name = fmt::format("{} {}", work.stage, *step_);
  throw data_.failure(at_, std::current_exception(), work);
}

}  // namespace penstock::train
