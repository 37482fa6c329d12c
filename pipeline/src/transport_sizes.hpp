#pragma once

#include "geometry.hpp"

#include <cstddef>
#include <vector>

namespace penstock::pipeline {

// What is worth trying for a transport, before anything is known of what fits the budgets. Pure.

/// Bytes of the largest block that is chosen: as long as a chunk where that is no larger, and else at most so large.
inline constexpr std::size_t most_chunk_block_bytes = std::size_t{16} << 20, largest_block_bytes = std::size_t{2} << 20;

/// Rows that come one by one, out of chunks that are decoded as a whole: the more of a chunk's rows a block holds, the
/// less often it is decoded. True where the largest block would hold one of each chunk, or more.
bool gathers_rows_of_chunks(const transport_task& task);
/// Rows of a block, the best first: near what copies fast, and where chunks or runs end.
std::vector<std::size_t> block_sizes(const wiring& w, const transport_task& task);
/// What slots take together at best: the better part of the last-level cache.
std::size_t good_slots_bytes(const transport_task& task);
/// Readers to begin with.
std::size_t wished_threads(const transport_task& task);
/// How many readers may be tried. Those that wait for storage need no processor; those that decode do.
std::size_t most_threads(const transport_task& task, std::size_t threads);

}  // namespace penstock::pipeline
