#pragma once

#include "fixture.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::test {

inline constexpr train::join all_joins[] = {train::join::difference, train::join::product, train::join::concatenation,
                                            train::join::dot};

/// Pairs of rows, and which of the two is better.
template <class T>
struct pairs {
  rows_of<T> first, second;
  std::vector<std::int32_t> better;

  pairs(std::size_t rows, std::size_t width) : first(rows, width, 2, 1), second(rows, width, 2, 2), better(rows) {
    for (std::size_t n = 0; n < rows; ++n) better[n] = first.row(n)[0] > second.row(n)[0] ? 1 : 0;
  }
  train::batch_rows rows(std::size_t from, std::size_t count) const {
    return {.x = first.row(from),
            .x2 = second.row(from),
            .targets = &better[from],
            .rows = count,
            .valid_rows = count,
            .first_row = from};
  }
};

inline train::stage_options options_for(const train::pair_options& pair, std::size_t rows) {
  return {.model = {.inputs = 5, .hidden = {6}, .outputs = 1, .activation = train::activation::tanh, .pair = pair},
          .loss = train::pairwise_ranking{},
          .rows = rows,
          .seed = 3};
}

}  // namespace penstock::test
