#include <penstock/gpu/gather.hpp>

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <stdexcept>

#include "cuda_backend.hpp"
#include "gather_plan.hpp"
#include "host/work.hpp"

namespace penstock::gpu {
namespace {

bool is_held(type from, type to) {
  return visit_type(from,
                    [&](auto a) { return visit_type(to, [](auto b) { return converts<decltype(a), decltype(b)>; }); });
}

void check_address(const char* what, const void* base, std::uint64_t distance, type element) {
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  if ((address | distance) % size_of(element) != 0)
    throw std::invalid_argument(
        fmt::format("the {} of a gather lies at an address that is no multiple of {} bytes, as {} needs", what,
                    size_of(element), name_of(element)));
}

// A draw of an index that it does not take need never end.
void check_draw(const permutation& draw, std::uint64_t first, std::uint64_t count) {
  if (draw.is_identity() || (first < draw.size() && count <= draw.size() - first)) return;
  throw std::invalid_argument(
      fmt::format("a gather of {} rows from {} on needs draws that a permutation of {} rows does not hold", count,
                  first, draw.size()));
}

void check(const gather_source& source, const gather_target& target, std::uint64_t count) {
  if (source.base == nullptr || target.base == nullptr)
    throw std::invalid_argument("a gather needs a source and a target");
  if (source.image_rows == 0 || source.images == 0)
    throw std::invalid_argument("a gather's source needs at least one image of at least one row");
  if (count > target.rows)
    throw std::invalid_argument(fmt::format("a gather of {} rows does not fit a ring of {}", count, target.rows));
  check_address("source", source.base, source.image_bytes | source.offset, source.element);
  check_address("target", target.base, 0, target.element);
}

/// What to do, checked; nothing where there are no rows.
std::optional<gather_plan> plan_of(const gather_source& source, const gather_target& target, std::uint64_t elements,
                                   const permutation& draw, std::uint64_t first_source, std::uint64_t first_target,
                                   std::uint64_t count, gather_arithmetic arithmetic) {
  check_gather(source.element, target.element, arithmetic);
  if (count == 0 || elements == 0) return {};
  check(source, target, count);
  check_draw(draw, first_source, count);
  return gather_plan{.source = source.base + source.offset,
                     .image_bytes = source.image_bytes,
                     .image_rows = source.image_rows,
                     .first_image = source.first_image % source.images,
                     .images = source.images,
                     .source_row_bytes = elements * size_of(source.element),
                     .first_source = first_source,
                     .draw = draw,
                     .target = target.base,
                     .target_rows = target.rows,
                     .target_row_bytes = elements * size_of(target.element),
                     .first_target = first_target % target.rows,
                     .count = count,
                     .elements = elements,
                     .from = source.element,
                     .to = target.element,
                     .swapped = source.swapped && size_of(source.element) > 1,
                     .arithmetic = arithmetic};
}

}  // namespace

void check_gather(type from, type to, gather_arithmetic arithmetic) {
  if (!std::isfinite(arithmetic.scale) || !std::isfinite(arithmetic.shift))
    throw std::invalid_argument(
        fmt::format("a conversion needs a finite scale and shift, not {} and {}", arithmetic.scale, arithmetic.shift));
  if ((from == to && arithmetic.is_plain()) || is_held(from, to)) return;
  throw std::invalid_argument(
      fmt::format("{} cannot be converted to {}{}; it can to float32, float64, float16, bfloat16, int32, int64 and "
                  "uint8, and be kept as it is",
                  name_of(from), name_of(to), arithmetic.is_plain() ? "" : " with a scale or shift"));
}

void kernel_graphs_traits::release(native_type graphs) noexcept { cuda::destroy(graphs); }

void gatherer::operator()(const gather_source& source, const gather_target& target, std::uint64_t elements,
                          const permutation& draw, std::uint64_t first_source, std::uint64_t first_target,
                          std::uint64_t count, gather_arithmetic arithmetic) {
  const auto plan = plan_of(source, target, elements, draw, first_source, first_target, count, arithmetic);
  if (!plan) return;
  if (stream_.device().is_host()) {
    host::begin("cudaGraphLaunch", stream_.faults(), plan->count * plan->target_row_bytes);
    return host::gather(*plan);
  }
  if (!graphs_) graphs_.reset(cuda::create_kernel_graphs());
  cuda::gather(stream_, *plan, *graphs_.native());
}

}  // namespace penstock::gpu
