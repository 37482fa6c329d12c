#include "large_allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

namespace {

constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
std::atomic<std::size_t> threshold{never};
std::atomic<std::size_t> seen{0};
thread_local bool counting_here = false;
thread_local std::size_t seen_here = 0;

void note(std::size_t bytes) noexcept {
  if (bytes >= threshold.load(std::memory_order_relaxed)) ++seen;
  if (counting_here) ++seen_here;
}

}  // namespace

// Replaced for the whole test program; the array forms call this one.
void* operator new(std::size_t bytes) {
  note(bytes);
  if (void* const there = std::malloc(bytes != 0 ? bytes : 1)) return there;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {  // AddressSanitizer has one of its own
  note(bytes);
  return std::malloc(bytes != 0 ? bytes : 1);
}
void operator delete(void* there) noexcept { std::free(there); }
void operator delete(void* there, std::size_t) noexcept { std::free(there); }

namespace penstock::test {

large_allocations::large_allocations(std::size_t bytes) {
  seen = 0;
  threshold = bytes;
}
large_allocations::~large_allocations() { threshold = never; }
std::size_t large_allocations::count() const noexcept { return seen; }

allocations_here::allocations_here() noexcept {
  seen_here = 0;
  counting_here = true;
}
allocations_here::~allocations_here() { counting_here = false; }
std::size_t allocations_here::count() const noexcept { return seen_here; }

}  // namespace penstock::test
