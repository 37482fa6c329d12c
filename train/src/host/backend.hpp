#pragma once

#include "../backend.hpp"

#include <cstddef>
#include <memory>

namespace penstock::train::host {

template <class T>
std::unique_ptr<backend<T>> make_backend(std::size_t threads);

}  // namespace penstock::train::host
