#pragma once

#include "geometry.hpp"
#include "ground.hpp"
#include "parts.hpp"
#include "row_supply.hpp"

#include <penstock/io/row_reader.hpp>

#include <memory>
#include <vector>

namespace penstock::pipeline {

/// A source that is open, and what follows from it before there is any memory.
struct opened::impl {
  /// Throws as description::open().
  explicit impl(std::shared_ptr<const description::parts> what);
  impl(std::shared_ptr<const description::parts> what, std::vector<io::row_reader> opened_readers);

  /// What sizes depend on; `wish` stands for the description's own.
  transport_task task(gpu::device d, const transport_options& wish) const;
  pipeline_plan plan(gpu::device d, const gpu::budget& limits, const gpu::ledger& taken,
                     const transport_options& wish) const;
  pipeline_plan describe(gpu::device d, const geometry& g, const transport_options& wish) const;
  /// What a pipeline of that plan, made for `wish`, stands on. The readers go with it, and may come back when it is
  /// over.
  std::shared_ptr<ground> stand_on(const pipeline_plan& plan, std::shared_ptr<gpu::memory> memory,
                                   const transport_options& wish);

  const wiring& fields(gpu::device d) const { return d.is_host() ? on_host : on_cuda; }

  std::shared_ptr<const description::parts> parts;
  std::vector<io::row_reader> readers;
  source_shape shape;
  row_supply supply;
  order rows;
  wiring on_host, on_cuda;
  std::vector<field_shape> shapes;

 private:
  bool decodes() const;
  bool waits_for_disk() const;
};

}  // namespace penstock::pipeline
