#include "wiring.hpp"

#include <penstock/bytes.hpp>
#include <penstock/gpu/gather.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>

namespace penstock::pipeline {
namespace {

std::size_t product(const std::vector<std::uint64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>{});
}

/// Products with the rows of a block or a ring stay within 64 bits.
void check_output(const std::string& transform, const field_shape& output) {
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 40;
  if (output.name.empty())
    throw std::invalid_argument(fmt::format("transform '{}' declares an output without a name", transform));
  std::uint64_t left = most_bytes / size_of(output.element);
  for (const std::uint64_t extent : output.row_shape)
    if (extent > left)
      throw std::invalid_argument(fmt::format("transform '{}' declares field '{}' with rows of more than {}", transform,
                                              output.name, format_bytes(most_bytes)));
    else if (extent > 0)
      left /= extent;
}

template <class Field>
std::size_t find(const std::vector<Field>& fields, const std::vector<std::size_t>& current, std::string_view name) {
  const auto found =
      std::find_if(current.begin(), current.end(), [&](std::size_t i) { return fields[i].name == name; });
  return found == current.end() ? current.size() : static_cast<std::size_t>(found - current.begin());
}

template <class Field>
Field make_field(const field_shape& shape) {
  Field field;
  field.name = shape.name;
  field.element = shape.element;
  field.row_shape = shape.row_shape;
  field.elements = product(shape.row_shape);
  return field;
}

/// Lets a chain of transforms work on `fields`: each declared output is a new field that takes its name's place.
template <class Field, class Transform>
std::vector<wired_transform> chain(const std::vector<Transform>& transforms, std::vector<Field>& fields,
                                   std::vector<std::size_t>& current) {
  std::vector<wired_transform> wired;
  for (const Transform& transform : transforms) {
    wired_transform step{transform.options.name,
                         std::max<std::size_t>(transform.options.concurrency, 1),
                         transform.function,
                         current,
                         {}};
    for (const field_shape& output : transform.options.outputs) {
      check_output(step.name, output);
      fields.push_back(make_field<Field>(output));
      const std::size_t place = find(fields, current, output.name);
      if (place == current.size())
        current.push_back(fields.size() - 1);
      else
        current[place] = fields.size() - 1;
    }
    step.outputs = current;
    wired.push_back(std::move(step));
  }
  return wired;
}

conversion convert(const wiring& w, std::size_t from, std::size_t to, const field_options& options, bool swapped) {
  const host_field& source = w.host[from];
  const device_field& target = w.device[to];
  conversion c{from, to, {options.scale, options.shift}, false};
  c.plain = source.element == target.element && !swapped && options.scale == 1 && options.shift == 0;
  try {
    gpu::check_gather(source.element, target.element, c.arithmetic);
  } catch (const std::invalid_argument& e) {
    throw std::invalid_argument(fmt::format("field '{}': {}", source.name, e.what()));
  }
  return c;
}

void add_row_ids(wiring& w, bool on_device) {
  host_field ids;
  ids.name = "row numbers";
  ids.element = type::uint64;
  ids.travels = on_device;
  w.host_row_ids = w.host.size();
  w.host.push_back(ids);
  if (!on_device) return;
  device_field device_ids;
  device_ids.name = ids.name;
  device_ids.element = ids.element;
  w.device_row_ids = w.device.size();
  w.device.push_back(device_ids);
  w.conversions.push_back(convert(w, w.host_row_ids, w.device_row_ids, {}, false));
}

void add_damage_mask(wiring& w, const damage_options& options) {
  if (std::any_of(w.host.begin(), w.host.end(), [&](const auto& field) { return field.name == options.mask; }))
    throw std::invalid_argument(
        fmt::format("the source has a field '{}'; give the mask of damaged rows another name", options.mask));
  host_field mask;
  mask.name = options.mask;
  mask.element = options.as;
  w.damage_mask = w.host.size();
  w.host.push_back(std::move(mask));
}

}  // namespace

bool is_small(const wiring& w, const device_field& field) {
  constexpr std::size_t parts = 64;
  std::size_t row_bytes = 0;
  for (const std::size_t of_batch : w.batch) row_bytes += w.device[of_batch].row_bytes();
  return field.row_bytes() * parts <= row_bytes;
}

void let_readers_convert(wiring& w) {
  if (!w.host_transforms.empty() || !w.device_transforms.empty()) return;
  if (std::ranges::any_of(w.conversions, [&](const conversion& c) { return !c.plain && !is_small(w, w.device[c.to]); }))
    return;
  for (conversion& c : w.conversions) {
    if (c.plain) continue;
    host_field converted = w.host[c.from];
    converted.element = w.device[c.to].element;
    converted.reader = none;
    converted.swapped = false;
    w.host[c.from].travels = false;
    w.read_conversions.push_back({c.from, w.host.size(), c.arithmetic});
    c = {w.host.size(), c.to, {}, true};
    w.host.push_back(std::move(converted));
  }
}

wiring wire(const description::parts& parts, std::span<const stored_field> stored, bool host) {
  wiring w;
  std::vector<std::size_t> current;
  const bool host_work = !parts.host_transforms.empty();
  w.swapped_by_reader = host_work || host;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    host_field field;
    field.name = parts.from.fields()[i].name;
    field.element = stored[i].element.element;
    field.row_shape = stored[i].row_shape;
    field.elements = product(field.row_shape);
    field.reader = i;
    field.swapped = stored[i].element.swapped;
    current.push_back(w.host.size());
    w.host.push_back(std::move(field));
  }
  if (parts.from.damaged().policy == damage_policy::skip) {
    add_damage_mask(w, parts.from.damaged());
    current.push_back(w.damage_mask);
  }
  w.host_transforms = chain(parts.host_transforms, w.host, current);

  const field_options as_it_is;
  std::vector<std::size_t> on_device;
  for (const std::size_t from : current) {
    w.host[from].travels = true;
    const auto& described = parts.from.fields();
    const auto options =
        std::find_if(described.begin(), described.end(), [&](const auto& f) { return f.name == w.host[from].name; });
    const field_options& how = options == described.end() ? as_it_is : options->options;
    device_field field;
    static_cast<wired_field&>(field) = w.host[from];
    field.element = how.as.value_or(field.element);
    on_device.push_back(w.device.size());
    w.device.push_back(std::move(field));
    w.conversions.push_back(convert(w, from, on_device.back(), how, w.host[from].swapped && !w.swapped_by_reader));
  }
  if (host_work || !parts.device_transforms.empty()) add_row_ids(w, !parts.device_transforms.empty());
  w.device_transforms = chain(parts.device_transforms, w.device, on_device);
  for (const std::size_t field : on_device) w.device[field].in_ring = true;
  w.batch = on_device;
  return w;
}

}  // namespace penstock::pipeline
