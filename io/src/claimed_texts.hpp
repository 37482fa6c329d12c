#pragma once

#include <cstdint>

namespace penstock::io {

/// Refuses, with failure, more texts of variable length than files of `bytes` in all can be thought to tell apart. Each
/// takes a code in memory, and each is looked at, whatever the file stores of it: a header of a few bytes may claim
/// any number.
void check_claimed_texts(std::uint64_t texts, std::uint64_t bytes);

}  // namespace penstock::io
