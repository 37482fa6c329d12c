#pragma once

#include <string>

namespace penstock::io {

/// Names in files may hold any bytes: what would end a line, or move a terminal's cursor, is a question mark in what
/// people read. error_context and the names of a dataset_info have them as they are.
std::string printable(std::string text);

}  // namespace penstock::io
