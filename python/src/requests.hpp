#pragma once

#include <penstock/pipeline/calibration.hpp>
#include <penstock/pipeline/description.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "row_criteria.hpp"
#include "row_maps.hpp"

namespace penstock::python {

/// A field as Python names it.
struct field_request {
  std::string name;
  std::vector<std::pair<std::string, std::string>> places;  ///< (file or pattern, dataset)
  std::string as;                                           ///< empty: as stored
  pipeline::field_options options;                          ///< but for `as`
  std::size_t row_axis = 0;
  std::vector<io::axis_range> region;
};

/// A source as Python names it; mixed where it has parts, and then without fields of its own.
struct source_request {
  std::vector<field_request> fields;
  std::optional<pipeline::selection> rows;
  std::vector<source_request> parts;
  double ratio = 1;              ///< of this source, where it is a part
  std::uint64_t mixed_rows = 0;  ///< of an epoch of the mix; 0: as many as the parts have together
};

struct loader_request {
  source_request source;
  row_maps maps;
  std::optional<pipeline::damage_options> damaged;  ///< of rows that may be left out
  pipeline::order_options order;
  pipeline::shard_options shard;
  pipeline::batch_options batches;
  pipeline::transport_options transport;
  pipeline::trace_options trace;
  std::optional<pipeline::calibration_options> calibrate;
  std::string device;
  gpu::budget budget;
};

/// Python's callables in the criteria of a source and of its parts: to be kept until the source was opened.
using kept_criteria = std::deque<row_criteria>;

/// Paths and names come as bytes.
std::string bytes_of(nanobind::handle object);
/// (fields, criteria of rows, [(source, ratio), ...] that are mixed, rows of an epoch of the mix). A field: (name,
/// [(file or pattern, dataset), ...], type or "", options, row axis, [(axis, first, count), ...]).
source_request source_of(const nanobind::tuple& of, kept_criteria& kept);
/// ("sequential",), ("shuffled", seed, run_rows, pool_rows), ("random", seed), ("weighted", seed, field, weights as
/// bytes of float64, rows) or ("balanced", seed, field, rows)
pipeline::order_options order_of(const nanobind::tuple& of);
loader_request request_of(const nanobind::tuple& source, kept_criteria& kept, const nanobind::list& maps,
                          const nanobind::tuple& order, const nanobind::dict& options);

enum class made_for {
  batches,
  shapes,  ///< all rows as they are stored: what they become is for those that functions of map() have worked on
};
/// Finds the files; waits for the file system, and wants no GIL.
pipeline::source make_source(const source_request& request, made_for what = made_for::batches);

}  // namespace penstock::python
