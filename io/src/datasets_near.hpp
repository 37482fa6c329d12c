#pragma once

#include "identifier.hpp"

#include <string>
#include <string_view>

namespace penstock::io {

/// For the sentence of an error: "; there are /a, /b", the few datasets of the file whose paths are most like `path`;
/// where that is a group with datasets, "; in it are /m/a, /m/b". Takes the library guard.
std::string datasets_near(hid_t file, std::string_view path);

}  // namespace penstock::io
