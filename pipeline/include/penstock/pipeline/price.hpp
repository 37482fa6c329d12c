#pragma once

#include <penstock/pipeline/order.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

namespace penstock::pipeline {

/// What an order costs, and what it gives for that, before it runs: opened::price().
struct order_price {
  /// Rows that rows are drawn from, as host transforms make them, resident on the device, once; where the budget
  /// allows, the plan holds them twice.
  std::size_t pool_bytes = 0;
  /// Tables on the host: rows that take part, weights, classes.
  std::size_t table_bytes = 0;
  /// Bytes read or decoded for each byte that is used: 1 where every chunk is decoded once. A chunk counts each time
  /// that reading comes to it from another, so this is at most what a run does: a block decodes a chunk once for all of
  /// its rows, and caches make up for some of the rest.
  double read_amplification = 1;
  /// mixing() by the classes that were asked for.
  std::optional<double> mixing{};
  /// Of several sources that are mixed: the share of batches that hold rows of one source alone. Of about 2^20 rows
  /// that were looked at.
  std::optional<double> batches_of_one_source{};
};

/// A line for people: "holds a pool of 128 MiB; each byte is read 1.00 times; a batch mixes classes to 0.970 of a
/// uniform shuffle".
std::string to_text(const order_price& price);

/// The class of a row that does not take part.
inline constexpr std::uint32_t no_class = std::numeric_limits<std::uint32_t>::max();

/// How well batches mix classes: the mean entropy of the classes in a batch over the mean that a uniform shuffle gives.
/// About 1: as a uniform shuffle does; 0: every batch is of one class; above 1: more evenly than by chance (classes
/// that take turns, or are balanced). `classes`: of each row of the source. About 2^20 rows of the epoch are looked at,
/// in whole batches spread over it. 1 where there is one class, or no row.
double mixing(const order& rows, std::span<const std::uint32_t> classes, std::uint64_t batch_rows,
              std::uint64_t epoch = 0);

/// The mean entropy, in nats, of the classes of `drawn` rows drawn without repetition from so many of each class:
/// the sum over classes of the mean of -(k/n) ln(k/n), where k follows the hypergeometric distribution.
double uniform_entropy(std::span<const std::uint64_t> rows_of_classes, std::uint64_t drawn);

}  // namespace penstock::pipeline
