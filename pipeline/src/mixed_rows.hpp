#pragma once

#include "row_sequence.hpp"

#include <memory>
#include <string>
#include <vector>

namespace penstock::pipeline {

/// The sources of a mix, as rows that take part.
struct mix_table {
  struct part {
    std::uint64_t first = 0;  ///< place of its first row
    std::uint64_t rows = 0;   ///< above 0
    double ratio = 1;
  };
  std::vector<part> parts;
  std::uint64_t rows = 0;  ///< of an epoch
};

/// Runs of several sources in turn, by ratio. Full turn j of all epochs is source 0's where round(j * share) steps up,
/// and the others' by the same rule among themselves: after any number of turns, counts are within one (of each source
/// before) of what the ratios say. An epoch's last turn, where it is short, goes by the same rule among the short turns
/// of all epochs, or it would always be the same source that lacks the rest of it. A source goes through its runs pass
/// by pass, in an order of its own in each; a last run that is short is filled up with rows from a drawn place on.
class mixed_rows final : public row_sequence {
 public:
  struct options {
    std::uint64_t seed = 0;
    bool permuted = false;  ///< within a source
    std::uint64_t run_rows = 1;
    std::uint64_t shards = 1;  ///< turns are dealt to: which shard gets which of a round is drawn
  };
  mixed_rows(std::shared_ptr<const mix_table> mix, const options& how);

  stretch at(std::uint64_t epoch, std::uint64_t position) const noexcept override;
  std::uint64_t rows() const noexcept override { return mix_->rows; }
  bool repeats() const noexcept override { return true; }
  std::uint64_t fingerprint() const noexcept override;
  std::string sources() const override;

 private:
  struct turn_of {
    std::size_t part;
    std::uint64_t number;
  };
  std::uint64_t turn_at(std::uint64_t epoch, std::uint64_t turn) const noexcept;
  turn_of whose(std::uint64_t turn) const noexcept;
  std::uint64_t turns_of(std::size_t part, std::uint64_t before) const noexcept;
  stretch in_part(turn_of turn, std::uint64_t offset) const noexcept;

  std::shared_ptr<const mix_table> mix_;
  options how_;
  std::uint64_t full_;                 ///< turns of an epoch that are whole runs
  bool is_cut_;                        ///< a short one follows them
  std::vector<std::uint64_t> shares_;  ///< of each source among it and those after it, in 2^-64
};

}  // namespace penstock::pipeline
