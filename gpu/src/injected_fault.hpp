#pragma once

#include <penstock/fault.hpp>

#include <cstddef>
#include <string_view>
#include <thread>

namespace penstock::gpu {

/// Asks the seam before a use of `site`, takes as long as it wants, and returns the error that it wants: 0 for none.
inline int injected_error(fault_injector* faults, fault_site site, std::string_view what, std::size_t bytes) {
  if (faults == nullptr) return 0;
  const fault wanted = faults->before(site, what, 0, bytes);
  if (wanted.delay.count() > 0) std::this_thread::sleep_for(wanted.delay);
  return wanted.error;
}

}  // namespace penstock::gpu
