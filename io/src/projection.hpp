#pragma once

#include "selection.hpp"

#include <functional>

namespace penstock::io {

/// Value n of a selection is value n of another one, as a mapping of a virtual dataset has it. Calls `visit` for those
/// of `from` that the values of `target` within `wanted` are, as far as `from` has so many. The values of both can be
/// counted. False, with no call, where this would take more steps than a read should: then any of `from` may be meant.
bool project(const selection& target, const box& wanted, const selection& from,
             const std::function<void(const lattice&)>& visit);

}  // namespace penstock::io
