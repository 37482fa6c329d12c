#pragma once

#include <cstddef>

namespace penstock::train::host {

/// Copies bytes without taking the lines of `to` into this core's caches first. For what every core has read since: to
/// write such lines in place, each must be taken away from the others, one after another, which between distant cores
/// takes ten times as long. Ends with settle_past_caches(), before another thread is told.
void copy_past_caches(const void* from, void* to, std::size_t bytes) noexcept;
void settle_past_caches() noexcept;

}  // namespace penstock::train::host
