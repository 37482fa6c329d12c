#pragma once

#include <penstock/fault.hpp>
#include <penstock/io/row_reader.hpp>
#include <penstock/pipeline/source.hpp>

namespace penstock::pipeline {

/// How a field's rows are read.
inline io::read_options read_options_of(const source::field_description& field, const fault_seam& faults) {
  io::read_options options;
  options.allow_missing_sources = field.options.allow_missing_sources;
  options.around_page_cache = field.options.around_page_cache;
  options.values.netcdf = field.options.netcdf;
  // Unpacked values of 16-bit integers would be float32 on the way, and float64 afterwards.
  if (field.options.netcdf && field.options.as == type::float64) options.values.as = type::float64;
  options.values.masked = field.options.masked;
  options.faults = faults;
  return options;
}

}  // namespace penstock::pipeline
