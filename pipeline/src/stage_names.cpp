#include "stage_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace penstock::pipeline {
namespace {

/// Of stages, of what blocks and the consumer wait for, and of whom a stage waits for.
constexpr std::string_view own_names[] = {"read",  "decode", "libhdf5",  "copy",      "gather",        "handing over",
                                          "order", "slots",  "consumer", "beginning", "device thread", "processors"};
constexpr std::string_view issued = " (issued)";

std::string told_apart(const std::string& name, std::set<std::string>& taken) {
  const bool is_own = std::ranges::find(own_names, name) != std::end(own_names) || name.ends_with(issued);
  const std::string first = is_own ? name + " (transform)" : name;
  std::string unique = first;
  for (int n = 2; !taken.insert(unique).second; ++n) unique = fmt::format("{} {}", first, n);
  return unique;
}

}  // namespace

stage_names::stage_names(const wiring& fields) {
  std::set<std::string> taken;
  for (const auto& transform : fields.host_transforms) host.push_back(told_apart(transform.name, taken));
  for (const auto& transform : fields.device_transforms) device.push_back(told_apart(transform.name, taken));
}

}  // namespace penstock::pipeline
