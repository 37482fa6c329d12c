#pragma once

#include <penstock/io/location.hpp>
#include <penstock/type.hpp>

#include <optional>
#include <string>
#include <vector>

namespace penstock::pipeline {

/// What a batch holds of a field: by default the stored type. A cast, and scale and shift, happen on the device, so
/// that the link carries the stored bytes: as(stored) * scale + shift.
struct field_options {
  std::optional<type> as{};
  double scale = 1;
  double shift = 0;
};

/// Named fields with the same number of rows. A description: nothing is opened yet.
class source {
 public:
  struct field_description {
    std::string name;
    std::vector<io::location> segments;
    field_options options;
  };

  /// Adds a field: the rows of `segments` one after another. Throws std::invalid_argument for a name that is taken or
  /// empty, and for no segments.
  source& field(std::string name, std::vector<io::location> segments, field_options options = {}) &;
  source&& field(std::string name, std::vector<io::location> segments, field_options options = {}) &&;

  const std::vector<field_description>& fields() const noexcept { return fields_; }

 private:
  std::vector<field_description> fields_;
};

}  // namespace penstock::pipeline
