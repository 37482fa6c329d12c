#include "stalls.hpp"

#include <functional>
#include <thread>

namespace penstock::test {
namespace {

/// SplitMix64's finaliser.
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

std::chrono::microseconds stalls::next(const std::string& stage, std::uint64_t every) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t drawn = mix(mix(options_.seed ^ std::hash<std::string>()(stage)) + uses_[stage]++);
  if (every == 0 || drawn % every != 0) return {};
  const auto longest = static_cast<std::uint64_t>(options_.longest.count());
  const std::chrono::microseconds lasts(static_cast<std::int64_t>(mix(drawn) % (longest + 1)));
  count& counted = counts_[stage];
  ++counted.stalls;
  counted.took += lasts;
  return lasts;
}

void stalls::pass(const std::string& stage, std::uint64_t every) { std::this_thread::sleep_for(next(stage, every)); }

fault stalls::before(fault_site site, std::string_view what, std::uint64_t, std::size_t bytes) {
  switch (site) {
    case fault_site::allocate_pinned: pinned_ += bytes; return {};
    case fault_site::allocate_device: device_ += bytes; return {};
    case fault_site::read_file: return {.delay = next("read", options_.every)};
    // The name of the call says whose it is: copies, gathers, events between them and the consumer.
    case fault_site::cuda_call: return {.delay = next(std::string(what), options_.every)};
    default: return {};
  }
}

void stalls::after_read(std::string_view path, std::uint64_t, std::span<std::byte> bytes) {
  constexpr std::size_t large = 64 << 10;
  constexpr std::uint64_t spoilt = 20;
  if (path == options_.spoilt && bytes.size() >= large && large_reads_++ == spoilt)
    bytes[bytes.size() / 2] ^= std::byte{4};
  pass("decode", options_.every);
}

std::map<std::string, stalls::count> stalls::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace penstock::test
