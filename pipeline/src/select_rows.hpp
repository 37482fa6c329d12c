#pragma once

#include "row_set.hpp"

#include <penstock/fault.hpp>
#include <penstock/pipeline/source.hpp>

#include <cstdint>
#include <memory>
#include <span>

namespace penstock::pipeline {

/// The rows that a source's selection chooses of its `rows`; null where it has none. A mixed source's parts, of
/// `part_rows` each, have selections of their own. Reads the fields that criteria name, piece by piece. Throws
/// std::invalid_argument where a criterion does not fit the source, io::error.
std::shared_ptr<const row_set> select_rows(const source& from, std::uint64_t rows,
                                           std::span<const std::uint64_t> part_rows, const fault_seam& faults);

}  // namespace penstock::pipeline
