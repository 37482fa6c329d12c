#include "in_order_exit.hpp"

#include <algorithm>

namespace penstock::pipeline {

void in_order_exit::pass(std::list<ticket> one) {
  std::unique_lock lock(mutex_);
  const auto later =
      std::find_if(early_.begin(), early_.end(), [&](const ticket& t) { return t.sequence > one.front().sequence; });
  early_.splice(later, one);
  if (busy_) return;
  busy_ = true;
  while (!early_.empty() && early_.front().sequence == next_) {
    std::list<ticket> goes;
    goes.splice(goes.end(), early_, early_.begin());
    ++next_;
    lock.unlock();
    out_(goes.front());
    lock.lock();
  }
  busy_ = false;
}

}  // namespace penstock::pipeline
