#pragma once

namespace examples {

/// The attribute of the root by which the program knows files that it made, and may make anew: its text is the command.
inline constexpr const char* mark = "penstock_dataset";

}  // namespace examples
