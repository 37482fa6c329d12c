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

/// The same for step_state's bad_input.
inline void note_input(std::uint64_t& where, std::uint64_t row) noexcept { note_first(where, order_of_input(row)); }

inline void add_one(std::uint64_t& where) noexcept { std::atomic_ref<std::uint64_t>(where).fetch_add(1); }

}  // namespace penstock::train::host
