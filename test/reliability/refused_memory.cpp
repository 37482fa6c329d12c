#include "refused_memory.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::int64_t> left{-1};  ///< uses until one is refused; below 0: none is
std::atomic<bool> refused{false};

bool is_due() noexcept {
  if (left.load(std::memory_order_relaxed) < 0 || left.fetch_sub(1) != 0) return false;
  refused = true;
  return true;
}

void* plain(std::size_t bytes) noexcept { return is_due() ? nullptr : std::malloc(bytes != 0 ? bytes : 1); }

}  // namespace

// Replaced for the whole program, libraries included; the array forms call these.
void* operator new(std::size_t bytes) {
  if (void* const there = plain(bytes)) return there;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return plain(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto align = static_cast<std::size_t>(alignment);
  void* const there = is_due() ? nullptr : std::aligned_alloc(align, (bytes + align) / align * align);
  if (there == nullptr) throw std::bad_alloc();
  return there;
}
void operator delete(void* there) noexcept { std::free(there); }
void operator delete(void* there, std::size_t) noexcept { std::free(there); }
void operator delete(void* there, std::align_val_t) noexcept { std::free(there); }
void operator delete(void* there, std::size_t, std::align_val_t) noexcept { std::free(there); }

namespace penstock::test {

void refuse_memory_at(std::int64_t n) noexcept {
  refused = false;
  left = n;
}

bool refuse_no_memory() noexcept {
  left = -1;
  return refused;
}

}  // namespace penstock::test
