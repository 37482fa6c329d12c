#include <penstock/gpu/device.hpp>
#include <penstock/gpu/error.hpp>

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

#include "cuda_backend.hpp"
#include "host/machine.hpp"

namespace penstock::gpu {
namespace {

// "no CUDA device: the reason", "the only CUDA device is cuda:0", "the CUDA devices are cuda:0 to cuda:3".
std::string what_there_is(const cuda::census& there) {
  if (there.devices == 0) return "there is no CUDA device: " + there.reason;
  if (there.devices == 1) return "the only CUDA device is cuda:0";
  return fmt::format("the CUDA devices are cuda:0 to cuda:{}", there.devices - 1);
}

}  // namespace

device device::cuda(int ordinal) {
  const auto there = cuda::count_devices();
  if (ordinal < 0 || ordinal >= there.devices)
    throw error(fmt::format("there is no device cuda:{}; {}; 'host' is always there", ordinal, what_there_is(there)));
  return device(ordinal);
}

device device::best() noexcept {
  try {
    const int devices = cuda::count_devices().devices;
    if (devices > 0) return device(cuda::roomiest_device(devices));
  } catch (const std::exception&) {
    // A driver that answers with an error serves no batch: the host does.
  }
  return host();
}

device device::parse(std::string_view text) {
  if (text == "host" || text == "cpu") return host();
  if (text == "auto") return best();
  if (text == "cuda") {
    const auto there = cuda::count_devices();
    if (there.devices == 0) throw error(what_there_is(there) + "; use 'host', which is always there");
    return device(cuda::roomiest_device(there.devices));
  }
  constexpr std::string_view prefix = "cuda:";
  if (text.starts_with(prefix)) {
    const std::string_view digits = text.substr(prefix.size());
    int ordinal = -1;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
    if (status == std::errc{} && end == digits.data() + digits.size() && ordinal >= 0) return cuda(ordinal);
  }
  throw std::invalid_argument(fmt::format("'{}' names no device; write host, cuda, cuda:0 or auto", text));
}

std::vector<device> device::all() {
  std::vector<device> devices;
  for (int ordinal = 0; ordinal < cuda::count_devices().devices; ++ordinal) devices.push_back(device(ordinal));
  devices.push_back(host());
  return devices;
}

std::string device::name() const { return is_host() ? "host" : fmt::format("cuda:{}", ordinal_); }

std::string device::description() const {
  if (is_cuda()) return fmt::format("{} ({})", name(), cuda::device_name(ordinal_));
  const std::size_t count = processors();
  const auto there = cuda::count_devices();
  const std::string also = there.devices == 0 ? "; no CUDA device: " + there.reason : "";
  return fmt::format("host ({} processor{}{})", count, count == 1 ? "" : "s", also);
}

memory_size memory_of(device d) { return d.is_cuda() ? cuda::memory_of(d.ordinal()) : host::memory_of_machine(); }

}  // namespace penstock::gpu
