#pragma once

#include <cstddef>

namespace penstock::test {

/// Counts what the program allocates with operator new in pieces of `bytes` or more, on any thread, while it lives.
class large_allocations {
 public:
  explicit large_allocations(std::size_t bytes);
  ~large_allocations();
  large_allocations(const large_allocations&) = delete;
  large_allocations& operator=(const large_allocations&) = delete;
  std::size_t count() const noexcept;
};

/// Counts what this thread allocates with operator new, in pieces of any size, while it lives.
class allocations_here {
 public:
  allocations_here() noexcept;
  ~allocations_here();
  allocations_here(const allocations_here&) = delete;
  allocations_here& operator=(const allocations_here&) = delete;
  std::size_t count() const noexcept;
};

}  // namespace penstock::test
