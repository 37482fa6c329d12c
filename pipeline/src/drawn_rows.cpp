#include "drawn_rows.hpp"

#include <fmt/format.h>

namespace penstock::pipeline {

row_sequence::stretch weighted_rows::at(std::uint64_t epoch, std::uint64_t position) const noexcept {
  return {weights_->place_at(key(seed_, epoch, purpose::weight, position) >> 1), 1};
}

std::string weighted_rows::description() const {
  return fmt::format("weighted: seed {}, {} rows drawn with repetition", seed_, rows_);
}

row_sequence::stretch balanced_rows::at(std::uint64_t epoch, std::uint64_t position) const noexcept {
  const std::uint64_t classes = classes_->classes(), round = position / classes;
  const gpu::permutation turns(classes, key(seed_, epoch, purpose::classes, round));
  const std::uint64_t one = turns(position % classes), rows = classes_->rows(one);
  const std::uint64_t pass = round / rows;
  const gpu::permutation own(rows, key(seed_, epoch, purpose::in_class, gpu::mix(one) ^ pass));
  return {classes_->place(one, own(round % rows)), 1};
}

std::string balanced_rows::description() const {
  return fmt::format("class-balanced: seed {}, {} rows of {} classes drawn with repetition", seed_, rows_,
                     classes_->classes());
}

}  // namespace penstock::pipeline
