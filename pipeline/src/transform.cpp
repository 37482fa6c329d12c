#include <penstock/pipeline/transform.hpp>

#include <fmt/format.h>

#include <stdexcept>

namespace penstock::pipeline {

const block_field& block::find(std::span<const block_field> fields, std::string_view name, type element) {
  std::string names;
  for (const block_field& field : fields) {
    if (field.name == name) {
      if (field.element != element)
        throw std::invalid_argument(
            fmt::format("field '{}' of the block is {}, not {}", name, name_of(field.element), name_of(element)));
      return field;
    }
    names += (names.empty() ? "" : ", ") + std::string(field.name);
  }
  throw std::invalid_argument(fmt::format("the block has no field '{}'; it has {}", name, names));
}

}  // namespace penstock::pipeline
