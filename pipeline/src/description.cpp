#include "parts.hpp"

#include <penstock/pipeline/calibration.hpp>

#include <fmt/format.h>

#include <stdexcept>

namespace penstock::pipeline {
namespace {

template <class Change>
std::shared_ptr<const description::parts> changed(const description::parts& from, Change change) {
  auto copy = std::make_shared<description::parts>(from);
  change(*copy);
  return copy;
}

}  // namespace

host_transform transform_host(transform_options options, transform_function function) {
  if (!function) throw std::invalid_argument(fmt::format("host transform '{}' has no function", options.name));
  return {std::move(options), std::move(function)};
}

device_transform transform_device(transform_options options, transform_function function) {
  if (!function) throw std::invalid_argument(fmt::format("device transform '{}' has no function", options.name));
  return {std::move(options), std::move(function)};
}

description read(source from, order_options how) { return {std::move(from), std::move(how)}; }

description::description(source from, order_options how) {
  if (from.fields().empty()) throw std::invalid_argument("the source has no fields; add one with source::field");
  parts_ = std::make_shared<parts>(parts{std::move(from), std::move(how), {}, {}, {}, {}, {}, {}, {}, {}, {}});
}

description operator|(description d, host_transform t) {
  d.parts_ = changed(*d.parts_, [&](auto& p) { p.host_transforms.push_back(std::move(t)); });
  return d;
}

description operator|(description d, device_transform t) {
  d.parts_ = changed(*d.parts_, [&](auto& p) { p.device_transforms.push_back(std::move(t)); });
  return d;
}

description operator|(description d, batch_options b) {
  if (b.rows == 0) throw std::invalid_argument("a batch needs at least one row; batch_options::rows is 0");
  constexpr std::size_t most = std::size_t{1} << 40;  // sums and products with the bytes of a row stay within 64 bits
  if (b.rows > most || b.held > most / b.rows)
    throw std::invalid_argument(
        fmt::format("{} batches of {} rows, held beside the next one, are beyond any memory; lower batch_options::rows "
                    "or held",
                    b.held, b.rows));
  d.parts_ = changed(*d.parts_, [&](auto& p) { p.batch = b; });
  return d;
}

description operator|(description d, shard_options s) {
  d.parts_ = changed(*d.parts_, [&](auto& p) { p.share = s; });
  return d;
}

description operator|(description d, transport_options t) {
  constexpr std::size_t most_threads = 1 << 16, most_slots = 1 << 24;  // more than would help
  if (t.threads > most_threads)
    throw std::invalid_argument(
        fmt::format("transport_options::threads is {}; at most {} blocks are read at once", t.threads, most_threads));
  if (t.slots > most_slots)
    throw std::invalid_argument(
        fmt::format("transport_options::slots is {}; at most {} blocks are held at once", t.slots, most_slots));
  d.parts_ = changed(*d.parts_, [&](auto& p) {
    p.transport = t;
    p.block_reason.clear();
    p.slots_reason.clear();
  });
  return d;
}

description operator|(description d, const calibration& measured) {
  d.parts_ = changed(*d.parts_, [&](auto& p) {
    p.transport = measured.transport;
    p.block_reason = measured.blocks.empty() ? "" : measured.block_reason;
    p.slots_reason = measured.slots.empty() ? "" : measured.slots_reason;
  });
  return d;
}

description operator|(description d, trace_options t) {
  d.parts_ = changed(*d.parts_, [&](auto& p) { p.trace = t; });
  return d;
}

description operator|(description d, fault_seam faults) {
  d.parts_ = changed(*d.parts_, [&](auto& p) { p.faults = std::move(faults); });
  return d;
}

}  // namespace penstock::pipeline
