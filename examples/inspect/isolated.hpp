#pragma once

#include <cstdint>
#include <string>

namespace examples {

/// Goes on in a child process, which may take so many seconds of processor time, ten times as long by the clock (0:
/// any), and ends with this one, however that ends. This one waits, and ends as the child does, by the same signal
/// where that was one: of a reader of the output that has gone, or of somebody. Where the child crashed, was killed or
/// used up its time, that is thrown here as a sentence about `file`.
void go_on_in_child(const std::string& file, std::uint64_t seconds);

}  // namespace examples
