#pragma once

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>

namespace penstock::fuzz {

/// Memory whose last byte lies before a page that may not be touched, and whose first byte follows poisoned ones: what
/// reads or writes outside it is found, in libraries that AddressSanitizer does not see into too (past the end).
class guarded_bytes {
 public:
  explicit guarded_bytes(std::size_t bytes) : bytes_(bytes) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    usable_ = (bytes + page - 1) / page * page + page;
    void* mapped = ::mmap(nullptr, usable_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    start_ = static_cast<std::byte*>(mapped);
    ::mprotect(start_ + usable_, page, PROT_NONE);
    mapped_ = usable_ + page;
    __asan_poison_memory_region(start_, usable_ - bytes_);
  }
  guarded_bytes(const std::uint8_t* from, std::size_t bytes) : guarded_bytes(bytes) {
    if (bytes > 0) std::memcpy(span().data(), from, bytes);
  }
  ~guarded_bytes() {
    __asan_unpoison_memory_region(start_, usable_);
    ::munmap(start_, mapped_);
  }
  guarded_bytes(const guarded_bytes&) = delete;
  guarded_bytes& operator=(const guarded_bytes&) = delete;

  /// The last of them, for one use after the other: those before are poisoned meanwhile.
  std::span<std::byte> last(std::size_t bytes) const noexcept {
    __asan_unpoison_memory_region(start_, usable_);
    __asan_poison_memory_region(start_, usable_ - bytes);
    return span().last(bytes);
  }
  std::span<std::byte> span() const noexcept { return {start_ + usable_ - bytes_, bytes_}; }

 private:
  std::byte* start_ = nullptr;
  std::size_t bytes_ = 0, usable_ = 0, mapped_ = 0;
};

}  // namespace penstock::fuzz
