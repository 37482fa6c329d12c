#include "cgroup.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

namespace penstock::gpu::host {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> text_of(const fs::path& file) {
  std::ifstream in(file);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// The file's first number; nothing where it has none ("max").
std::optional<double> number_of(const fs::path& file) {
  std::ifstream in(file);
  double number = 0;
  if (!(in >> number)) return std::nullopt;
  return number;
}

std::optional<double> quota_v2(const fs::path& folder) {
  std::ifstream in(folder / "cpu.max");
  double quota = 0, period = 0;
  if (!(in >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

std::optional<double> quota_v1(const fs::path& folder) {
  const auto quota = number_of(folder / "cpu.cfs_quota_us"), period = number_of(folder / "cpu.cfs_period_us");
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

// Bytes of page cache, from memory.stat: the kernel takes them back before it refuses anything.
double cache_bytes(const fs::path& folder) {
  std::ifstream in(folder / "memory.stat");
  std::string name;
  double value = 0, sum = 0;
  while (in >> name >> value)
    if (name == "inactive_file" || name == "active_file") sum += value;
  return sum;
}

bool names(const std::string& controllers, const std::string& controller) {
  std::istringstream in(controllers);
  for (std::string name; std::getline(in, name, ',');)
    if (name == controller) return true;
  return false;
}

}  // namespace

cgroup::cgroup(fs::path mount, const std::string& membership) : mount_(std::move(mount)) {
  std::istringstream in(membership);
  for (std::string line; std::getline(in, line);) {  // "4:cpu,cpuacct:/user.slice" or "0::/user.slice"
    const auto first = line.find(':');
    if (first == std::string::npos) continue;
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty())
      unified_ = path;
    else
      controllers_.emplace_back(controllers, path);
  }
}

cgroup cgroup::of_this_process() { return {"/sys/fs/cgroup", text_of("/proc/self/cgroup").value_or("")}; }

std::vector<fs::path> cgroup::folders(const std::string& controller) const {
  fs::path root = mount_;
  std::string path;
  const auto v1 = std::find_if(controllers_.begin(), controllers_.end(),
                               [&](const auto& entry) { return names(entry.first, controller); });
  if (v1 != controllers_.end()) {
    std::error_code ignored;
    root /= fs::exists(mount_ / controller, ignored) ? controller : v1->first;
    path = v1->second;
  } else if (unified_) {
    path = *unified_;
  } else {
    return {};
  }
  // In a container the path may be the host's, which is not there: then the root is the container's own group.
  std::vector<fs::path> found;
  for (fs::path below = fs::path(path).relative_path(); !below.empty(); below = below.parent_path())
    found.push_back(root / below);
  found.push_back(root);
  return found;
}

std::optional<double> cgroup::processors() const {
  std::optional<double> least;
  for (const fs::path& folder : folders("cpu"))
    for (const auto& quota : {quota_v2(folder), quota_v1(folder)})
      if (quota && (!least || *quota < *least)) least = quota;
  return least;
}

std::optional<cgroup::memory> cgroup::memory_limit() const {
  std::optional<memory> least;
  for (const fs::path& folder : folders("memory")) {
    auto limit = number_of(folder / "memory.max"), used = number_of(folder / "memory.current");
    if (!limit) limit = number_of(folder / "memory.limit_in_bytes"), used = number_of(folder / "memory.usage_in_bytes");
    constexpr double no_limit = 0x1p62;  // v1 writes a number near 2^63 where there is none
    if (!limit || !used || *limit >= no_limit) continue;
    const double available = std::clamp(*limit - *used + cache_bytes(folder), 0.0, *limit);
    if (!least || static_cast<std::size_t>(available) < least->free_bytes)
      least = memory{static_cast<std::size_t>(available), static_cast<std::size_t>(*limit)};
  }
  return least;
}

}  // namespace penstock::gpu::host
