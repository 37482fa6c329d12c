#include "tensors.hpp"

#include <ATen/DLConvertor.h>

#include <algorithm>
#include <stdexcept>

namespace examples {

torch::Tensor tensor_of(const penstock::pipeline::shared_batch& batch, std::string_view field) {
  auto lent = batch.tensor(field);
  torch::Tensor tensor = at::fromDLPack(reinterpret_cast<DLManagedTensor*>(lent.get()));
  (void)lent.release();  // torch calls the deleter, which gives the rows back in the order of the batch's stream
  return tensor;
}

image_shape::image_shape(const std::vector<std::uint64_t>& row_shape, bool last) : channels_last(last) {
  const std::size_t axes = row_shape.size();
  if (axes == 0 || axes > 3 || (last && axes != 3))
    throw std::invalid_argument(
        "the inputs have " + std::to_string(axes) +
        " axes beside their rows; images have [height, width], [channels, height, width], or [values], and "
        "--channels-last is for [height, width, channels]");
  if (std::find(row_shape.begin(), row_shape.end(), 0U) != row_shape.end())
    throw std::invalid_argument("the rows of the inputs hold no values: one of their extents is 0");
  const auto extent = [&](std::size_t axis) { return static_cast<std::int64_t>(row_shape[axis]); };
  width = extent(last ? 1 : axes - 1);
  if (axes > 1) height = extent(last ? 0 : axes - 2);
  if (axes > 2) channels = extent(last ? 2 : 0);
}

torch::Tensor image_shape::images(const torch::Tensor& rows) const {
  if (channels_last) return rows.permute({0, 3, 1, 2});
  return rows.view({rows.size(0), channels, height, width});
}

}  // namespace examples
