#pragma once

#include "../backend.hpp"

#include <cstddef>
#include <memory>

namespace penstock::train::host {

template <class S>
std::unique_ptr<backend<S>> make_backend(std::size_t threads);

}  // namespace penstock::train::host
