#pragma once

#include "row_supply.hpp"

#include <penstock/io/row_reader.hpp>
#include <penstock/pipeline/order.hpp>

#include <optional>
#include <vector>

namespace penstock::pipeline {

/// Bytes read or decoded for each byte used, over a stretch of the epoch's reading: order_price::read_amplification.
double read_amplification(const order& rows, const std::vector<io::row_reader>& readers);

/// order_price::batches_of_one_source; nothing where there are no several sources, or no whole batch.
std::optional<double> batches_of_one_source(const order& rows, const row_supply& supply, std::uint64_t batch_rows);

}  // namespace penstock::pipeline
