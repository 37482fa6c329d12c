#include "field_scan.hpp"

#include "read_options_of.hpp"

#include <penstock/gpu/permutation.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace penstock::pipeline {
namespace {

constexpr std::size_t piece_bytes = 4 << 20;  // of a field that is looked at, at once

}  // namespace

const source::field_description& field_of(const source& from, const std::string& name, std::string_view why) {
  for (const auto& field : from.fields())
    if (field.name == name) return field;
  throw std::invalid_argument(fmt::format("{} field '{}', which the source does not have", why, name));
}

void look_at(const io::row_reader& reader, const std::function<void(std::uint64_t row, const std::byte*)>& look) {
  const std::size_t row_bytes = std::max<std::size_t>(reader.row_bytes(), 1);
  const std::uint64_t step = std::max<std::uint64_t>(piece_bytes / row_bytes, 1);
  std::vector<std::byte> piece(std::min<std::uint64_t>(step, reader.rows()) * reader.row_bytes());
  for (std::uint64_t first = 0; first < reader.rows(); first += step) {
    const std::uint64_t count = std::min(step, reader.rows() - first);
    reader.read(first, count, {piece.data(), count * reader.row_bytes()});
    for (std::uint64_t i = 0; i < count; ++i) look(first + i, piece.data() + i * reader.row_bytes());
  }
}

void look_at_numbers(const source::field_description& field, const fault_seam& faults, std::string_view why,
                     const std::function<void(std::uint64_t row, double)>& look) {
  io::read_options options = read_options_of(field, faults);
  options.values.as = type::float64;
  const io::row_reader reader(field.segments, options);
  if (!reader.class_names().empty()) {  // which are read as codes: numbers, but of no meaning here
    const io::location& first = field.segments.front();
    throw std::invalid_argument(fmt::format(
        "{} field '{}', and {}:{} holds texts, no numbers; name a field with one number in each row, or list what is "
        "wanted in the call (a selection of row numbers, weighted::weights)",
        why, field.name, first.file.string(), first.dataset));
  }
  if (reader.row_bytes() != sizeof(double))
    throw std::invalid_argument(fmt::format("{} field '{}', which has {} numbers in a row; it needs one", why,
                                            field.name, reader.row_bytes() / sizeof(double)));
  look_at(reader, [&](std::uint64_t row, const std::byte* bytes) {
    double value = 0;
    std::memcpy(&value, bytes, sizeof value);
    look(row, value);
  });
}

std::uint64_t mix_bytes(const std::byte* bytes, std::size_t count) {
  std::uint64_t mixed = gpu::mix(count);
  for (std::size_t done = 0; done < count; done += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + done, std::min(sizeof word, count - done));
    mixed = gpu::mix(mixed ^ word);
  }
  return mixed;
}

}  // namespace penstock::pipeline
