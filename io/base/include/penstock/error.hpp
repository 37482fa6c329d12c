#pragma once

#include <stdexcept>

namespace penstock {

/// Base of every exception that Penstock throws for work that failed. Each module derives one type that carries what a
/// caller needs to act. A broken precondition (a wrong argument) is a std::invalid_argument instead.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace penstock
