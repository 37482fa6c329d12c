#pragma once

#include <string>

namespace examples {

/// Goes on in a child process. This one waits and ends as the child does; where a signal ended it, libhdf5 has crashed
/// on `file`, and that is thrown here as a sentence.
void go_on_in_child(const std::string& file);

}  // namespace examples
