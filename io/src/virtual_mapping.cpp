#include "virtual_mapping.hpp"

#include <algorithm>

namespace penstock::io {
namespace {

struct selection {
  box part;  // count: positions along each axis
  extents step{};
};

/// A selection as positions with one step along each axis; nothing where it is not so simple.
std::optional<selection> simple_selection(hid_t space) {
  selection s;
  const int rank = checked(H5Sget_simple_extent_ndims(space), "a mapping's shape cannot be read");
  if (rank < 1) return std::nullopt;
  s.part.rank = static_cast<std::size_t>(rank);
  if (H5Sget_select_type(space) == H5S_SEL_ALL) {
    std::array<hsize_t, max_rank> shape{};
    checked(H5Sget_simple_extent_dims(space, shape.data(), nullptr), "a mapping's shape cannot be read");
    std::copy_n(shape.begin(), s.part.rank, s.part.count.begin());
    s.step.fill(1);
    return s;
  }
  if (H5Sget_select_type(space) != H5S_SEL_HYPERSLABS || H5Sis_regular_hyperslab(space) <= 0) return std::nullopt;
  std::array<hsize_t, max_rank> start{}, stride{}, count{}, block{};
  checked(H5Sget_regular_hyperslab(space, start.data(), stride.data(), count.data(), block.data()),
          "a mapping's selection cannot be read");
  for (std::size_t k = 0; k < s.part.rank; ++k) {
    if (count[k] == H5S_UNLIMITED || block[k] == H5S_UNLIMITED) return std::nullopt;
    const bool joined = count[k] == 1 || stride[k] == block[k];
    if (!joined && block[k] != 1) return std::nullopt;
    s.part.start[k] = start[k];
    s.step[k] = joined ? 1 : stride[k];
    if (__builtin_mul_overflow(count[k], block[k], &s.part.count[k])) return std::nullopt;
  }
  return s;
}

template <class Get>
std::string name_from(Get get, hid_t creation, std::size_t n) {
  const auto length = checked(get(creation, n, nullptr, 0), "a mapping's source cannot be read");
  std::string name(static_cast<std::size_t>(length) + 1, '\0');
  checked(get(creation, n, name.data(), name.size()), "a mapping's source cannot be read");
  name.pop_back();
  return name;
}

std::optional<virtual_mapping> read_mapping(hid_t creation, std::size_t n) {
  virtual_mapping m;
  m.file = name_from(H5Pget_virtual_filename, creation, n);
  m.dataset = name_from(H5Pget_virtual_dsetname, creation, n);
  if (m.file.find('%') != std::string::npos || m.dataset.find('%') != std::string::npos) return std::nullopt;
  const space_id to(checked(H5Pget_virtual_vspace(creation, n), "a mapping cannot be read"));
  const space_id from(checked(H5Pget_virtual_srcspace(creation, n), "a mapping cannot be read"));
  const auto target = simple_selection(to.native());
  if (!target) return std::nullopt;
  m.target = target->part;
  m.step = target->step;
  m.whole_source = H5Sget_select_type(from.native()) == H5S_SEL_ALL;
  if (m.whole_source) return m;
  const auto source = simple_selection(from.native());
  if (!source) return std::nullopt;
  for (std::size_t k = 0; k < source->part.rank; ++k)
    if (source->step[k] != 1 && source->part.count[k] > 1) return std::nullopt;
  m.source = source->part;
  return m;
}

}  // namespace

std::size_t virtual_mapping::source_axis_of(std::size_t axis) const noexcept {
  for (std::size_t k = 0; k < source.rank; ++k)
    if (source.count[k] > 1 && target_axis[k] == axis) return k;
  return 0;
}

bool virtual_mapping::resolve(const std::vector<std::uint64_t>& source_shape) {
  if (whole_source) {
    source.rank = source_shape.size();
    std::copy(source_shape.begin(), source_shape.end(), source.count.begin());
  }
  if (source.rank != source_shape.size() || source.rank == 0) return false;
  for (std::size_t k = 0; k < source.rank; ++k)
    if (source.start[k] > source_shape[k] || source.count[k] > source_shape[k] - source.start[k]) return false;
  std::size_t t = 0;
  const auto skip_ones = [&] {
    while (t < target.rank && target.count[t] == 1) ++t;
  };
  for (std::size_t k = 0; k < source.rank; ++k) {
    if (source.count[k] == 1) continue;
    skip_ones();
    if (t == target.rank || target.count[t] != source.count[k]) return false;
    target_axis[k] = t++;
  }
  skip_ones();
  return t == target.rank;
}

std::optional<std::vector<virtual_mapping>> read_virtual_mappings(hid_t creation) {
  const library_guard guard;
  std::size_t count = 0;
  checked(H5Pget_virtual_count(creation, &count), "its mappings cannot be counted");
  std::vector<virtual_mapping> all;
  for (std::size_t n = 0; n < count; ++n) {
    auto m = read_mapping(creation, n);
    if (!m) return std::nullopt;
    all.push_back(std::move(*m));
  }
  return all;
}

}  // namespace penstock::io
