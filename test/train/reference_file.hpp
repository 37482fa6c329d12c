#pragma once

#include <nlohmann/json.hpp>

#include <fstream>
#include <stdexcept>
#include <string>

namespace penstock::test {

/// The cases of a file that reference/pytorch.py wrote.
inline nlohmann::json reference_cases(const std::string& name) {
  const std::string path = std::string(PENSTOCK_TRAIN_REFERENCE) + "/" + name;
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + " cannot be read");
  return nlohmann::json::parse(file).at("cases");
}

}  // namespace penstock::test
