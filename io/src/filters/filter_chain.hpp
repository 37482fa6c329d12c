#pragma once

#include "decoder.hpp"

#include <penstock/fault.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace penstock::io {

/// The name people know a filter by: the registered one, or what the file says.
std::string filter_name(int id, const char* stored_name);

/// Why chunks with these filters cannot be decoded here, in one clause; empty where they can.
std::string why_not_decodable(const std::vector<filter>& filters, std::uint64_t chunk_bytes);

/// The filters of a dataset, undone last to first. Thread-safe.
class filter_chain {
 public:
  filter_chain() = default;
  /// Precondition: why_not_decodable is empty.
  filter_chain(const std::vector<filter>& filters, std::size_t chunk_bytes);

  bool empty() const noexcept { return decoders_.empty(); }
  /// Bit n set for each filter n: a mask that skips all.
  std::uint32_t all() const noexcept { return decoders_.size() >= 32 ? ~0u : (1u << decoders_.size()) - 1; }
  /// What a workspace needs, where the largest stored chunk has `stored` bytes.
  workspace_sizes workspace(std::size_t stored) const noexcept;

  /// Decodes one chunk into `chunk` (its full size). Bit n of `mask` set: filter n was not applied. `faults` (null:
  /// none) is asked at fault_site::decode before each filter, and shown what that put out.
  void decode(std::span<const std::byte> stored, std::uint32_t mask, std::span<std::byte> chunk,
              decode_workspace& workspace, fault_injector* faults = nullptr) const;

 private:
  std::size_t chunk_bytes_ = 0;
  std::vector<std::unique_ptr<decoder>> decoders_;
  std::vector<std::string> names_;
};

}  // namespace penstock::io
