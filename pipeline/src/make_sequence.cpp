#include "make_sequence.hpp"

#include "drawn_rows.hpp"
#include "each_once.hpp"
#include "mixed_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace penstock::pipeline {
namespace {

using made = std::shared_ptr<const row_sequence>;

struct maker {
  const sequence_shape& shape;
  const row_supply& supply;

  /// Positions of several epochs, and what is added to them, stay within 64 bits.
  static void check_rows(std::uint64_t rows) {
    constexpr std::uint64_t most = std::uint64_t{1} << 48;
    if (rows > most)
      throw std::invalid_argument(fmt::format("an epoch of {} rows is asked for; it has at most {}", rows, most));
  }

  std::uint64_t rows_or(std::uint64_t wish) const {
    check_rows(wish);
    if (wish && shape.rows == 0)
      throw std::invalid_argument(fmt::format("{} rows shall be drawn in an epoch, and no row takes part", wish));
    return wish ? wish : shape.rows;
  }

  made mixed(std::uint64_t seed, bool permuted) const {
    check_rows(supply.mix->rows);
    const std::uint64_t sources = supply.mix->parts.size();
    if (sources > 1 && shape.run_rows > 1 && supply.mix->rows / shape.run_rows < sources)
      throw std::invalid_argument(
          fmt::format("runs of {} rows are too long for an epoch of {} that mixes {} sources: it would be of some of "
                      "them alone; lower run_rows, or draw more rows in an epoch (mix_options::rows)",
                      shape.run_rows, supply.mix->rows, sources));
    return std::make_shared<mixed_rows>(
        supply.mix, mixed_rows::options{seed, permuted, shape.run_rows, std::max<std::uint64_t>(shape.shards, 1)});
  }
  void refuse_mix() const {
    if (supply.mix)
      throw std::invalid_argument(
          "sources that are mixed by ratio are read in sequence, shuffled or random; weights and classes would say "
          "otherwise how often rows come");
  }

  made operator()(const sequential&) const {
    if (supply.mix) return mixed(0, false);
    return std::make_shared<each_once>(shape.rows);
  }
  made operator()(const shuffled& how) const {
    if (supply.mix) return mixed(how.seed, true);
    const auto last = shape.shards > 1 ? each_once::last_run::comes_last : each_once::last_run::is_put_in;
    return std::make_shared<each_once>(shape.rows, shape.run_rows, how.seed, last);
  }
  made operator()(const random& how) const {
    if (supply.mix) return mixed(how.seed, true);
    return std::make_shared<each_once>(shape.rows, 1, how.seed, each_once::last_run::comes_last);
  }
  made operator()(const weighted& how) const {
    refuse_mix();
    if (!supply.weights) throw std::invalid_argument("a weighted order needs the weights of the rows");
    return std::make_shared<weighted_rows>(supply.weights, how.seed, rows_or(how.rows));
  }
  made operator()(const class_balanced& how) const {
    refuse_mix();
    if (!supply.classes) throw std::invalid_argument("a class-balanced order needs the classes of the rows");
    return std::make_shared<balanced_rows>(supply.classes, how.seed, rows_or(how.rows));
  }
};

}  // namespace

made make_sequence(const order_options& how, const sequence_shape& shape, const row_supply& supply) {
  return std::visit(maker{shape, supply}, how);
}

}  // namespace penstock::pipeline
