#pragma once

#include <penstock/fault.hpp>
#include <penstock/gpu/device.hpp>
#include <penstock/gpu/ledger.hpp>
#include <penstock/pipeline/mixed.hpp>
#include <penstock/pipeline/order.hpp>
#include <penstock/pipeline/pipeline.hpp>
#include <penstock/pipeline/plan.hpp>
#include <penstock/pipeline/price.hpp>
#include <penstock/pipeline/source.hpp>
#include <penstock/pipeline/transform.hpp>

#include <memory>
#include <string>
#include <vector>

namespace penstock::pipeline {

enum class last_batch : std::uint8_t {
  keep,  ///< the last batch of an epoch is as short as it is
  drop,  ///< rows that do not fill a batch are left out of the epoch
  pad    ///< it is filled up with zeros, and its mask says so
};

struct batch_options {
  std::size_t rows = 256;
  last_batch last = last_batch::keep;
  std::size_t held = 1;  ///< batches that the consumer may hold beside the one it gets next
  /// For finding mistakes: rows that were given back, and slots and their copies on the device whose rows are out, are
  /// overwritten with bytes 0xff (NaN, -1) in the order of the streams that used them, so that who reads them later
  /// does not get away with it. Costs a write of every row for each, and on a device calls for each batch.
  bool poisoned = false;
};

struct host_transform {
  transform_options options{};
  transform_function function{};
};
struct device_transform {
  transform_options options{};
  transform_function function{};
};

/// Parts that a description is composed of with |.
host_transform transform_host(transform_options options, transform_function function);
device_transform transform_device(transform_options options, transform_function function);
inline batch_options batched(batch_options options) { return options; }
/// For one of several processes that share the epochs: each gets its shard's rows, and all get the same number of
/// batches, so that the last ones must be padded or dropped.
inline shard_options sharded(shard_options options) { return options; }
/// At most 65,536 readers and 2^24 slots: more throws std::invalid_argument where it becomes part of a description.
inline transport_options transport(transport_options options) { return options; }
/// Keeps what each block went through, for pipeline::write_trace().
inline trace_options traced(trace_options options = {.bytes = std::size_t{8} << 20}) { return options; }

class opened;
struct calibration;  // calibration.hpp

/// What shall be streamed, and how. Cheap to copy; nothing is opened or allocated by it.
class description {
 public:
  description(source from, order_options how);

  friend description operator|(description d, host_transform t);
  friend description operator|(description d, device_transform t);
  friend description operator|(description d, batch_options b);
  friend description operator|(description d, shard_options s);
  friend description operator|(description d, transport_options t);
  /// Streams with what was measured.
  friend description operator|(description d, const calibration& measured);
  friend description operator|(description d, trace_options t);
  /// Faults for tests.
  friend description operator|(description d, fault_seam faults);

  /// Opens the source: metadata and chunk indexes. Throws io::error (also for fields with different row counts, and
  /// for texts that shall become numbers), std::invalid_argument (conversions that there are not, an order that does
  /// not suit the rows), pipeline::error (build: no memory for its tables).
  opened open() const;
  /// Opens, plans and allocates. Throws gpu::budget_error with the ledger where the budget is too small.
  pipeline build(gpu::device d, const gpu::budget& limits) const;

  struct parts;
  const parts& contents() const noexcept { return *parts_; }

 private:
  std::shared_ptr<const parts> parts_;
};

/// Reads `from` in the order `how`.
description read(source from, order_options how = sequential{});

/// A description whose source is open: shapes are known, budgets can be tried. Movable.
class opened {
 public:
  opened(opened&&) noexcept;
  opened& operator=(opened&&) noexcept;
  ~opened();

  std::uint64_t rows() const noexcept;
  /// Fields of a batch, in order.
  const std::vector<field_shape>& fields() const noexcept;
  const order& row_order() const noexcept;

  /// What the order costs, and how well it mixes the classes of a field (not asked for where it has no name; rows with
  /// the same bytes in it are of one class). Reads that field. Throws std::invalid_argument where there is no such
  /// field, or it has more than 2^20 classes; io::error.
  order_price price(const std::string& class_field = {}) const;

  /// Plans within what `taken` leaves of `limits`; throws gpu::budget_error with both. Allocates nothing.
  pipeline_plan plan(gpu::device d, const gpu::budget& limits, const gpu::ledger& taken = {}) const;
  /// The smallest plan there is, whatever the budget.
  pipeline_plan smallest_plan(gpu::device d) const;
  /// Builds on memory that holds the plan's items (among others): how a trainer and its pipeline share one budget. The
  /// description is used up.
  pipeline build(const pipeline_plan& plan, std::shared_ptr<gpu::memory> memory) &&;

  struct impl;
  explicit opened(std::unique_ptr<impl>) noexcept;

 private:
  std::unique_ptr<impl> impl_;
};

}  // namespace penstock::pipeline
