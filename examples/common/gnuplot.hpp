#pragma once

#include <string>
#include <string_view>

#include "input_files.hpp"

namespace examples {

/// Refuses a picture, named by `option`, that could not be drawn, before any work is done: its name does not end in
/// .svg or .png, check_output() refuses it, or there is no gnuplot on PATH.
void check_plot(const char* option, const std::string& file, const input_files& inputs);

/// Draws what the gnuplot commands `script` plot into `file`, an SVG or PNG by its ending, which holds all of it or is
/// left as it was. Throws std::runtime_error with what gnuplot said.
void draw(const std::string& file, std::string_view script);

/// Text between quotation marks in a script, shown as it is; a line break becomes a space.
std::string quoted_for_gnuplot(std::string_view text);

}  // namespace examples
