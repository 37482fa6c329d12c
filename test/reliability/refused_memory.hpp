#pragma once

#include <cstdint>

namespace penstock::test {

/// From now on, the n-th use of operator new (from 0), on any thread and in any library, throws std::bad_alloc, once.
/// Whoever links refused_memory.cpp gets its operator new.
void refuse_memory_at(std::int64_t n) noexcept;
/// No more; whether one was refused.
bool refuse_no_memory() noexcept;

}  // namespace penstock::test
