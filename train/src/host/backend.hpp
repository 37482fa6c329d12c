#pragma once

#include "../backend.hpp"

#include <cstddef>
#include <memory>

namespace penstock::train::host {

/// Threads that compute where a stage asks for so many, 0 for the default: no more than TBB has workers.
std::size_t computing_threads(std::size_t asked, std::size_t processors, std::size_t workers) noexcept;
/// The same on this machine.
std::size_t computing_threads(std::size_t asked);

/// `threads`: see computing_threads().
template <class S>
std::unique_ptr<backend<S>> make_backend(std::size_t threads);

}  // namespace penstock::train::host
