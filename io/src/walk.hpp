#pragma once

#include "identifier.hpp"

#include <functional>
#include <string>

namespace penstock::io {

/// Calls `visit(path)` for every dataset below the group `top` (empty: of the file) in name order, each once; soft and
/// external links are not followed. `damaged(path, sentence)` is told of objects that cannot be opened. Takes the
/// library guard.
void walk_datasets(hid_t file, const std::string& top, const std::function<void(const std::string&)>& visit,
                   const std::function<void(const std::string&, const std::string&)>& damaged);

}  // namespace penstock::io
