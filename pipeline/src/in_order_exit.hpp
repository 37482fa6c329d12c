#pragma once

#include "reader_gate.hpp"

#include <cstdint>
#include <functional>
#include <list>
#include <mutex>

namespace penstock::pipeline {

/// Where tickets come in any order and go out one at a time, in that of their sequence: on the threads that bring them.
/// Thread-safe.
class in_order_exit {
 public:
  explicit in_order_exit(std::function<void(ticket)> out) : out_(std::move(out)) {}

  /// Takes the ticket in `one`. Whoever brings the next in line lets it out, and those that follow it and are there.
  void pass(std::list<ticket> one);

 private:
  const std::function<void(ticket)> out_;
  std::mutex mutex_;
  std::list<ticket> early_;  ///< in order; a ticket brings its node along, so that none needs memory
  std::uint64_t next_ = 0;
  bool busy_ = false;  ///< someone lets out
};

}  // namespace penstock::pipeline
