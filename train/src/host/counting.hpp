#pragma once

#include "../input_fault.hpp"

#include <atomic>
#include <cstdint>

namespace penstock::train::host {

/// Rows run at once: the smallest one stays, whichever comes first.
inline void note_first(std::uint64_t& where, std::uint64_t row) noexcept {
  std::atomic_ref<std::uint64_t> first(where);
  std::uint64_t seen = first.load();
  while (row < seen && !first.compare_exchange_weak(seen, row)) {
  }
}

/// The same for progress::bad_input.
inline void note_input(std::uint64_t& where, std::uint64_t row) noexcept {
  std::atomic_ref<std::uint64_t> first(where);
  std::uint64_t seen = first.load();
  while (order_of_input(row) < order_of_input(seen) && !first.compare_exchange_weak(seen, row)) {
  }
}

inline void add_one(std::uint64_t& where) noexcept { std::atomic_ref<std::uint64_t>(where).fetch_add(1); }

}  // namespace penstock::train::host
