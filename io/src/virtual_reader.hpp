#pragma once

#include "dataset_reader.hpp"
#include "describe.hpp"
#include "virtual_mapping.hpp"

#include <memory>
#include <vector>

namespace penstock::io {

/// Reads a virtual dataset from its sources, each in its own way. Parts of one source share its reader.
class virtual_reader final : public dataset_reader {
 public:
  struct part {
    virtual_mapping mapping;
    std::shared_ptr<const dataset_reader> reader;  ///< null where the source is absent: fill values
  };
  virtual_reader(const dataset_description& description, std::vector<part> parts);

  reader_memory memory(std::size_t row_axis) const override;
  std::uint64_t decoded_rows(std::size_t row_axis) const override;
  void read(const read_request& request, scratch& s) const override;

 private:
  void read_source(const part& p, read_request from, scratch& s) const;
  void read_part(const part& p, const read_request& request, scratch& s) const;
  bool covered() const;

  std::vector<part> parts_;
  fill_value fill_value_;
  std::uint64_t values_;
  bool covered_;  // every value has a source: no fill values are needed
};

}  // namespace penstock::io
