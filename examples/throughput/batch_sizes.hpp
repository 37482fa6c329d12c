#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace examples {

/// "256,1024" as these sizes, "32:16384" as the first doubled up to the last. Both may be mixed with commas. Throws
/// std::invalid_argument that shows the text.
std::vector<std::size_t> parse_batch_sizes(std::string_view text);

}  // namespace examples
