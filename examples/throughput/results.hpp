#pragma once

#include "measure.hpp"

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace examples {

/// All that was measured.
struct results {
  std::string device;
  std::vector<figure> figures;  ///< in the order of measuring
  /// What the first file of saved results says; {} where they are measured: each figure has its own.
  std::optional<penstock::pipeline::machine_limits> saved_limits{};
  std::string ended_by{};  ///< the error that came after these figures; empty: all are there
};

/// The limits that all results have in common: the storage's, where values of all figures come from the same files.
penstock::pipeline::machine_limits common_limits(const results& all);

/// How much of the link's or the storage's limit a figure came to, whichever is more: bytes as they are stored, or
/// copied. Nothing where it used neither, or the limit of what it used is not known.
std::optional<double> share_of_limit(const figure& f);

/// Puts a figure's report beside the limits of its files.
void judge(figure& f, const penstock::pipeline::machine_limits& limits);

void print_head();
/// A figure's line: rates, share of the limit, memory; below it, what held Penstock up.
void print(const figure& f);

nlohmann::json to_json(const results& all);
/// What files of to_json() hold together, as far as it can be drawn; device and limits are the first one's. Throws
/// std::runtime_error, naming the file.
results saved_results(const std::vector<std::string>& files);
/// A line of names, and one for each figure.
std::string to_csv(const results& all);
/// gnuplot commands: GB/s against the batch size on a logarithmic axis, a line for each reader, dataset and order, and
/// one for each limit that all have in common.
std::string plot_of(const results& all);

}  // namespace examples
