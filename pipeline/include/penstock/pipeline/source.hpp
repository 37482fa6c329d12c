#pragma once

#include <penstock/io/location.hpp>
#include <penstock/pipeline/damage.hpp>
#include <penstock/pipeline/selection.hpp>
#include <penstock/type.hpp>

#include <limits>
#include <memory>
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
  /// netCDF's packing is undone while rows are read: `_FillValue` becomes `masked`, then `scale_factor` and
  /// `add_offset` (io::value_options says how). The link then carries floats: float64 where `as` is.
  bool netcdf = false;
  double masked = std::numeric_limits<double>::quiet_NaN();
  /// Virtual datasets may lack sources: their rows are fill values. Otherwise they are refused.
  bool allow_missing_sources = false;
  /// Files are read around the page cache (io::read_options says what that costs).
  bool around_page_cache = false;
};

struct mixture;       // mixed.hpp
struct source_share;  // mixed.hpp
struct mix_options;   // mixed.hpp

/// Named fields with the same number of rows. A description: nothing is opened yet.
class source {
 public:
  struct field_description {
    std::string name;
    std::vector<io::location> segments;
    field_options options;
  };

  /// Adds a field: the rows of `segments` one after another. Throws std::invalid_argument for a name that is taken or
  /// empty, for no segments, and where the source is mixed.
  source& field(std::string name, std::vector<io::location> segments, field_options options = {}) &;
  source&& field(std::string name, std::vector<io::location> segments, field_options options = {}) &&;

  /// Lets only some rows take part. Again: those that are in both.
  source& select(selection which) &;
  source&& select(selection which) &&;

  /// What becomes of rows that are damaged where they are stored: source.damaged({.policy = damage_policy::skip}).
  /// Throws std::invalid_argument for a mask without a name, or of another type than there are.
  source& damaged(damage_options options) &;
  source&& damaged(damage_options options) &&;

  const std::vector<field_description>& fields() const noexcept { return fields_; }
  /// Nothing: all rows.
  const std::optional<selection>& selected() const noexcept { return selected_; }
  const damage_options& damaged() const noexcept { return damaged_; }
  /// The sources that mixed() made this one of; null where it is one by itself.
  const std::shared_ptr<const mixture>& mix() const noexcept { return mix_; }

 private:
  friend source mixed(std::vector<source_share> parts, mix_options how);

  std::vector<field_description> fields_;
  std::optional<selection> selected_;
  damage_options damaged_;
  std::shared_ptr<const mixture> mix_;
};

}  // namespace penstock::pipeline
