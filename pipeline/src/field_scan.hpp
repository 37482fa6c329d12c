#pragma once

#include <penstock/io/row_reader.hpp>
#include <penstock/pipeline/source.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace penstock::pipeline {

/// The field of a source; `why` begins the error's sentence: "rows are selected by".
const source::field_description& field_of(const source& from, const std::string& name, std::string_view why);

/// Calls `look` with each row's number and bytes, in order; reads piece by piece.
void look_at(const io::row_reader& reader, const std::function<void(std::uint64_t row, const std::byte*)>& look);

/// Calls `look` with each row's number and its one number as float64. Throws std::invalid_argument where the field has
/// several in a row, or texts.
void look_at_numbers(const source::field_description& field, const fault_seam& faults, std::string_view why,
                     const std::function<void(std::uint64_t row, double)>& look);

/// A number for bytes; up to 8 of them: another one for other bytes.
std::uint64_t mix_bytes(const std::byte* bytes, std::size_t count);

}  // namespace penstock::pipeline
