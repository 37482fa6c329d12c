#pragma once

#include "row_set.hpp"

#include <penstock/fault.hpp>
#include <penstock/pipeline/source.hpp>

#include <cstdint>
#include <memory>

namespace penstock::pipeline {

/// The rows that a source's selection chooses of its `rows`; null where it has none. Reads the fields that criteria
/// name, piece by piece. Throws std::invalid_argument where a criterion does not fit the source, io::error.
std::shared_ptr<const row_set> select_rows(const source& from, std::uint64_t rows, const fault_seam& faults);

}  // namespace penstock::pipeline
