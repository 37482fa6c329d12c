#pragma once

#include "parts.hpp"

#include <penstock/gpu/gather.hpp>
#include <penstock/io/row_reader.hpp>

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace penstock::pipeline {

inline constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

/// Rows of one kind, somewhere in memory.
struct wired_field {
  std::string name;
  type element = type::float32;
  std::vector<std::uint64_t> row_shape;
  std::size_t elements = 1;  ///< of a row

  std::size_t row_bytes() const noexcept { return elements * size_of(element); }
};

/// A field in a block on the host.
struct host_field : wired_field {
  std::size_t reader = none;  ///< the reader that fills it; none: a transform, row numbers or the mask
  bool swapped = false;       ///< arrives in the other byte order
  bool travels = false;       ///< goes on to the device
};

/// A field on the device.
struct device_field : wired_field {
  bool in_ring = false;  ///< of a batch; otherwise between transforms, gone with its piece
};

/// How a travelling host field becomes a device field.
struct conversion {
  std::size_t from = 0;
  std::size_t to = 0;
  gpu::gather_arithmetic arithmetic;
  /// Bytes stay as they are: no cast, swap or arithmetic.
  bool plain = false;
};

/// What a reader makes of a host field once it is read: another host field.
struct read_conversion {
  std::size_t from = 0;
  std::size_t to = 0;
  gpu::gather_arithmetic arithmetic;
};

/// One transform, with the fields that it sees.
struct wired_transform {
  std::string name;
  std::size_t concurrency = 1;
  transform_function function;
  std::vector<std::size_t> inputs;
  std::vector<std::size_t> outputs;
};

/// Every field's way from the readers to the batch, resolved by name. Pure.
struct wiring {
  std::vector<host_field> host;
  std::vector<device_field> device;
  std::vector<read_conversion> read_conversions;
  std::vector<conversion> conversions;
  std::vector<wired_transform> host_transforms;
  std::vector<wired_transform> device_transforms;
  std::vector<std::size_t> batch;     ///< device fields of a batch, in the order of the source, then as added
  std::size_t host_row_ids = none;    ///< host field that holds row numbers, where a transform may ask for them
  std::size_t device_row_ids = none;  ///< the same on the device
  std::size_t damage_mask = none;     ///< host field that says which rows are intact, where damaged ones are left out
  bool swapped_by_reader = false;     ///< blocks are in native byte order: the host's own, or its transforms', work

  bool needs_device_work() const noexcept { return !device_transforms.empty(); }
};

/// What a source field is, as its reader describes it.
struct stored_field {
  io::element_type element;
  std::vector<std::uint64_t> row_shape;
};

/// A field is small where its rows have at most a 64th of a row's bytes: labels beside images.
bool is_small(const wiring& w, const device_field& field);

/// Lets readers convert small fields of rows that come out as they were read, where nothing else needs a kernel. A
/// kernel for a few bytes of each block disturbs the consumer's as much as one for all of them.
void let_readers_convert(wiring& w);

/// Resolves the description's fields for the host device or another; throws std::invalid_argument where a transform or
/// conversion does not fit.
wiring wire(const description::parts& parts, std::span<const stored_field> stored, bool host);

}  // namespace penstock::pipeline
