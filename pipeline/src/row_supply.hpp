#pragma once

#include "row_set.hpp"

#include <memory>

namespace penstock::pipeline {

class weight_table;
class class_table;
struct mix_table;

/// All that an order needs of its source beside the shape. Null: not asked for.
struct row_supply {
  std::shared_ptr<const row_set> only{};
  std::shared_ptr<const weight_table> weights{};
  std::shared_ptr<const class_table> classes{};
  std::shared_ptr<const mix_table> mix{};
};

}  // namespace penstock::pipeline
