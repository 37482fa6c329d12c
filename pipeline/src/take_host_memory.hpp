#pragma once

#include <penstock/bytes.hpp>
#include <penstock/fault.hpp>
#include <penstock/pipeline/error.hpp>

#include <fmt/format.h>

#include <cstddef>
#include <exception>
#include <new>
#include <string_view>

namespace penstock::pipeline {

/// What the ledger calls host memory of the pipeline's own.
namespace memory_items {
inline constexpr const char* chosen = "pipeline: rows that take part";
inline constexpr const char* weights = "pipeline: weights of rows";
inline constexpr const char* classes = "pipeline: rows by class";
inline constexpr const char* trace = "pipeline: trace";
}  // namespace memory_items

/// What `take` gives, which takes host memory of the ledger, `item`. Throws pipeline::error where the system, or the
/// seam, refuses it.
template <class F>
auto take_host_memory(const fault_seam& faults, std::string_view item, std::size_t bytes, F take) try {
  if (faults && faults->before(fault_site::allocate_host, item, 0, bytes).error != 0) throw std::bad_alloc();
  return take();
} catch (const std::bad_alloc&) {
  throw error(fmt::format("there is not enough host memory for '{}', which takes {}", item, format_bytes(bytes)),
              {"build", 0, 0, 0, {}}, std::current_exception());
}

}  // namespace penstock::pipeline
