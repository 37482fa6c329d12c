#pragma once

#include "row_sequence.hpp"
#include "row_supply.hpp"

#include <penstock/pipeline/order_options.hpp>

#include <memory>

namespace penstock::pipeline {

struct sequence_shape {
  std::uint64_t rows = 0;  ///< that take part
  std::uint64_t run_rows = 1;
  std::uint64_t shards = 1;
};

/// The sequence of an order. Throws std::invalid_argument where the order draws by what the supply does not hold.
std::shared_ptr<const row_sequence> make_sequence(const order_options& how, const sequence_shape& shape,
                                                  const row_supply& supply);

}  // namespace penstock::pipeline
