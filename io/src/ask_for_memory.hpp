#pragma once

#include <penstock/fault.hpp>

#include <cstddef>
#include <new>
#include <string_view>

namespace penstock::io {

/// What the ledger calls memory of readers.
namespace memory_items {
inline constexpr const char* chunk_index = "chunk index";
inline constexpr const char* mappings = "mappings of virtual datasets";
inline constexpr const char* staged = "staged datasets";
inline constexpr const char* scratch = "read scratch";
inline constexpr const char* check = "chunks that are looked at";
inline constexpr const char* decoded = "decoded chunks";
inline constexpr const char* library = "libhdf5's chunk caches";
}  // namespace memory_items

/// Before memory of the ledger is taken: lets the seam refuse it, as a system would that has none. Throws
/// std::bad_alloc. `what`: of memory_items.
inline void ask_for_memory(const fault_seam& faults, std::string_view what, std::size_t bytes) {
  if (faults && bytes > 0 && faults->before(fault_site::allocate_host, what, 0, bytes).error != 0)
    throw std::bad_alloc();
}

}  // namespace penstock::io
