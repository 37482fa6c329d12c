#pragma once

#include <penstock/pipeline/price.hpp>

#include <cstddef>
#include <string>

#include "measure.hpp"

namespace examples {

/// What the request's order costs, and how well its batches mix the classes in the dataset `labels` of the same files.
/// Reads all labels. Throws std::runtime_error where these are not one for each row.
penstock::pipeline::order_price price_of(const stream_request& request, const std::string& labels,
                                         std::size_t batch_rows);

}  // namespace examples
