#pragma once

#include <penstock/io/row_reader.hpp>
#include <penstock/pipeline/order.hpp>

#include <vector>

namespace penstock::pipeline {

/// Bytes read or decoded for each byte used, over a stretch of the epoch's reading: order_price::read_amplification.
double read_amplification(const order& rows, const std::vector<io::row_reader>& readers);

}  // namespace penstock::pipeline
