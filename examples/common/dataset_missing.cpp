#include "dataset_missing.hpp"

#include <fmt/format.h>

#include <string>

namespace examples {

std::invalid_argument dataset_missing(const penstock::io::file& file, const char* option) {
  std::string there;
  for (const auto& dataset : file.datasets()) {
    if (dataset.type_text == "unreadable")  // a group, perhaps, in which it lies
      throw std::runtime_error(fmt::format("{}:{}: {}", file.path().string(), dataset.path, dataset.unreadable));
    there += (there.empty() ? "" : ", ") + dataset.path;
  }
  return std::invalid_argument(fmt::format("{}: which dataset? Name it with {}; there are {}", file.path().string(),
                                           option, there.empty() ? "none" : there));
}

}  // namespace examples
