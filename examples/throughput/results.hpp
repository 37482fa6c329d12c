#pragma once

#include "limits.hpp"
#include "measure.hpp"

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace examples {

/// All that was measured.
struct results {
  std::string device;
  std::optional<machine_limits> limits;  ///< there after the first figure
  std::vector<figure> figures;           ///< in the order of measuring
};

/// How much of the link's or the storage's limit a figure came to, whichever is more: bytes as they are stored, or
/// copied. Nothing where it used neither, or what it used is not known.
std::optional<double> share_of_limit(const figure& f, const machine_limits& limits);

/// Puts a figure's report beside the limits.
void judge(figure& f, const machine_limits& limits);

void print_head();
/// A figure's line: rates, share of the limit, memory; below it, what held Penstock up.
void print(const figure& f, const machine_limits& limits);

nlohmann::json to_json(const results& all);
/// What files of to_json() hold together, as far as it can be drawn; device and limits are the first one's. Throws
/// std::runtime_error, naming the file.
results saved_results(const std::vector<std::string>& files);
/// A line of names, and one for each figure.
std::string to_csv(const results& all);
/// gnuplot commands: GB/s against the batch size on a logarithmic axis, a line for each reader, dataset and order, and
/// one for each limit.
std::string plot_of(const results& all);

}  // namespace examples
