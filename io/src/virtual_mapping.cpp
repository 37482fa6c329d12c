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

/// Whether %b stands for numbers in it. What else follows a % but another one, libhdf5 refuses: it is no number, whose
/// names would never end.
bool is_numbered_name(const std::string& written) {
  for (std::size_t n = 0; n + 1 < written.size(); ++n)
    if (written[n] == '%' && written[++n] == 'b') return true;
  return false;
}

/// A name in which %% stands for %, and %b for a number.
std::string name_at(const std::string& written, std::uint64_t number) {
  std::string name;
  for (std::size_t n = 0; n < written.size(); ++n) {
    if (written[n] != '%') {
      name += written[n];
    } else if (++n < written.size()) {
      name += written[n] == 'b' ? std::to_string(number) : written.substr(n, 1);
    }
  }
  return name;
}

written_source read_written_source(hid_t creation, std::size_t n) {
  return {name_from(H5Pget_virtual_filename, creation, n), name_from(H5Pget_virtual_dsetname, creation, n)};
}

std::optional<virtual_mapping> read_mapping(hid_t creation, std::size_t n) {
  virtual_mapping m;
  const auto written = read_written_source(creation, n);
  if (written.is_numbered()) return std::nullopt;
  auto name = written.at(0);
  m.file = std::move(name.file);
  m.dataset = std::move(name.dataset);
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
  for (std::size_t k = 1; k < source->part.rank; ++k)
    if (source->step[k] != 1 && source->part.count[k] > 1) return std::nullopt;
  m.source = source->part;
  if (m.source.count[0] > 1) m.source_step = source->step[0];
  return m;
}

}  // namespace

std::size_t virtual_mapping::source_axis_of(std::size_t axis) const noexcept {
  for (std::size_t k = 0; k < source.rank; ++k)
    if (source.count[k] > 1 && target_axis[k] == axis) return k;
  return 0;
}

std::uint64_t virtual_mapping::shown_rows(std::uint64_t rows, std::size_t row_axis) const noexcept {
  const auto axis = source_axis_of(row_axis);
  const auto every = axis == 0 ? source_step : 1;
  return std::min((rows + every - 1) / every, source.count[axis]) * step[row_axis];
}

bool virtual_mapping::resolve(const std::vector<std::uint64_t>& source_shape) {
  if (whole_source) {
    source.rank = source_shape.size();
    std::copy(source_shape.begin(), source_shape.end(), source.count.begin());
  }
  if (source.rank != source_shape.size() || source.rank == 0) return false;
  for (std::size_t k = 0; k < source.rank; ++k) {
    std::uint64_t span = source.count[k];
    if (k == 0 && span > 1 && __builtin_mul_overflow(span - 1, source_step, &span)) return false;
    if (k == 0 && source.count[k] > 1) ++span;
    if (source.start[k] > source_shape[k] || span > source_shape[k] - source.start[k]) return false;
  }
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

bool written_source::is_numbered() const { return is_numbered_name(file) || is_numbered_name(dataset); }

source_name written_source::at(std::uint64_t number) const { return {name_at(file, number), name_at(dataset, number)}; }

std::size_t count_mappings(hid_t creation) {
  std::size_t count = 0;
  checked(H5Pget_virtual_count(creation, &count), "its mappings cannot be counted");
  return count;
}

std::vector<written_source> written_sources(hid_t creation) {
  const library_guard guard;
  std::vector<written_source> all;
  const auto count = count_mappings(creation);
  for (std::size_t n = 0; n < count; ++n) all.push_back(read_written_source(creation, n));
  return all;
}

std::optional<std::vector<virtual_mapping>> read_virtual_mappings(hid_t creation) {
  const library_guard guard;
  const auto count = count_mappings(creation);
  std::vector<virtual_mapping> all;
  all.reserve(count);
  for (std::size_t n = 0; n < count; ++n) {
    auto m = read_mapping(creation, n);
    if (!m) return std::nullopt;
    all.push_back(std::move(*m));
  }
  return all;
}

}  // namespace penstock::io
