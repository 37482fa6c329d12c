#pragma once

#include <cstddef>

namespace penstock::train::host {

/// Makes OpenBLAS map its packing buffers for so many threads that multiply at once. Asking for one where the system
/// gives none, OpenBLAS would try again without end, within a product. Throws penstock::error instead.
void take_blas_buffers(std::size_t threads);

}  // namespace penstock::train::host
