#pragma once

#include <penstock/io/error.hpp>
#include <penstock/io/row_reader.hpp>
#include <penstock/pipeline/damage.hpp>
#include <penstock/pipeline/selection.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace penstock::pipeline {

/// Reads rows past damage, and keeps what was left out. Which rows that are depends on the files alone: a piece that
/// cannot be read is halved down to single rows, or to the chunks of a dataset with filters, or of a virtual dataset's
/// source, which are whole or not; texts are looked at one by one when they are opened. Thread-safe.
class damage_log {
 public:
  explicit damage_log(damage_options options) : options_(std::move(options)), count_at_(options_.limit_rows) {}

  /// As row_reader::read, but rows that are damaged become zeros and are appended to `skipped`. Leaves off between two
  /// reads where `ended` says so: `out` is undefined then. Throws io::error for what is no damage (memory, too many
  /// open files), and penstock::error beyond the limit.
  void read(const std::string& field, const io::row_reader& reader, extent rows, std::span<std::byte> out,
            std::vector<extent>& skipped, const std::function<bool()>& ended);
  /// What was left out, by field, then in the order of the rows; neighbours of one dataset joined.
  std::vector<damaged_rows> list() const;
  /// Rows of the source, each counted once.
  std::uint64_t rows() const;

 private:
  bool is_known(const std::string& field, extent rows) const;
  void note(const std::string& field, const io::row_reader& reader, extent rows, const io::error& why);
  std::uint64_t count_rows() const;
  using parts = std::map<std::pair<std::string, std::uint64_t>, damaged_rows>;  ///< by field and first row
  parts::iterator join(parts::iterator left, parts::iterator right);

  damage_options options_;
  mutable std::mutex mutex_;
  parts parts_;
  std::uint64_t rows_of_parts_ = 0;  ///< as many as rows, or more: where fields are damaged in the same ones
  std::uint64_t count_at_;           ///< while parts have no more, rows are within the limit; 0: they are not
};

/// Sorted, and none touches another.
std::vector<extent> joined(std::vector<extent> all);

/// Writes the mask of `rows`, one value of `as` after another: 1, or 0 for those in `skipped`, which is joined().
void write_mask(extent rows, std::span<const extent> skipped, type as, std::byte* out);

}  // namespace penstock::pipeline
