#pragma once

#include <cstdint>
#include <string>

namespace examples {

/// What the child may take; 0: any.
struct child_limits {
  std::uint64_t seconds = 0;       ///< of processor time, and ten times as long by the clock
  std::uint64_t memory_bytes = 0;  ///< of address space, beside what the program has when it begins
};

/// Goes on in a child process, which has these limits and ends with this one, however that ends. This one waits, and
/// ends as the child does, by the same signal where that was one: of a reader of the output that has gone, or of
/// somebody. Where the child crashed, was killed or used up its time, that is thrown here as a sentence about `file`.
/// Memory beyond the limit is refused to the child, as by a system that has no more.
void go_on_in_child(const std::string& file, const child_limits& limits);

}  // namespace examples
