#pragma once

#include <functional>

namespace penstock::fuzz {

enum class outcome { fine, fault_of_libhdf5, fault_of_penstock };

/// Runs `work` in a child process first. Where the child ends by a signal, a report of a sanitizer, or takes longer
/// than `seconds`, the innermost call on its stack that is libhdf5's or Penstock's own says whose fault it is.
outcome try_in_child(const std::function<void()>& work, unsigned seconds);

}  // namespace penstock::fuzz
