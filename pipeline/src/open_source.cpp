// Opening: readers for all fields, and what the order needs of them.

#include "opened_impl.hpp"
#include "read_options_of.hpp"
#include "supply_rows.hpp"

#include <penstock/io/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace penstock::pipeline {
namespace {

/// For people: "field 'x' has 10 rows in a.h5:/x".
std::string describe_rows(const source::field_description& field, const io::row_reader& reader) {
  const io::location& first = field.segments.front();
  const std::size_t more = field.segments.size() - 1;
  return fmt::format("field '{}' has {} rows in {}:{}{}", field.name, reader.rows(), first.file.string(), first.dataset,
                     more ? fmt::format(" and {} more", more) : "");
}

/// Texts and opaque values travel as bytes: a cast would make numbers of characters, silently.
void refuse_cast_of_bytes(const source::field_description& field, const io::row_reader& reader) {
  const io::element_type& stored = reader.element();
  const bool bytes = stored.element == type::uint8 && stored.numpy != "|u1" && stored.numpy != "|b1";
  if (!bytes || !field.options.as || *field.options.as == type::uint8) return;
  const io::location& first = field.segments.front();
  throw io::error(fmt::format("its values are bytes ({}), which do not become numbers; read them as uint8, and let a "
                              "transform make numbers of them",
                              stored.numpy),
                  {.file = first.file.string(), .dataset = first.dataset});
}

/// Rows of each source that a mixed one is made of. Throws io::error where its fields differ in them.
std::vector<std::uint64_t> rows_of_parts(const source& from, const std::vector<io::row_reader>& readers) {
  std::vector<std::uint64_t> rows;
  if (!from.mix()) return rows;
  const auto& parts = from.mix()->parts;
  for (std::size_t field = 0; field < readers.size(); ++field) {
    const std::string& name = from.fields()[field].name;
    auto at = readers[field].segments().begin();
    for (std::size_t part = 0; part < parts.size(); ++part) {
      const auto& own = parts[part].from.fields();
      const auto same = std::find_if(own.begin(), own.end(), [&](const auto& f) { return f.name == name; });
      std::uint64_t here = 0;
      for (std::size_t n = 0; n < same->segments.size(); ++n) here += at++->rows;
      if (field == 0)
        rows.push_back(here);
      else if (rows[part] != here)
        throw io::error(
            fmt::format("source {} of a mix has {} rows in field '{}', and {} in field '{}'; all fields need "
                        "the same number",
                        part + 1, rows[part], from.fields().front().name, here, name),
            {.file = same->segments.front().file.string(), .dataset = same->segments.front().dataset});
    }
  }
  return rows;
}

std::vector<io::row_reader> open_readers(const description::parts& parts) {
  std::vector<io::row_reader> readers;
  for (const auto& field : parts.from.fields()) {
    readers.emplace_back(field.segments, read_options_of(field, parts.faults));
    refuse_cast_of_bytes(field, readers.back());
    if (readers.back().rows() != readers.front().rows())
      throw io::error(fmt::format("{}, {}; all fields need the same number",
                                  describe_rows(parts.from.fields().front(), readers.front()),
                                  describe_rows(field, readers.back())));
  }
  return readers;
}

source_shape shape_of(const std::vector<io::row_reader>& readers) {
  source_shape shape{.rows = readers.front().rows()};
  for (const io::row_reader& reader : readers) {
    shape.row_bytes += reader.row_bytes();
    shape.chunk_rows = std::max(shape.chunk_rows, reader.chunk_rows());
    if (reader.decoded_rows() > 0) shape.decoded.push_back({reader.row_bytes(), reader.decoded_rows()});
  }
  return shape;
}

}  // namespace

opened::impl::impl(std::shared_ptr<const description::parts> what) : impl(what, open_readers(*what)) {}

opened::impl::impl(std::shared_ptr<const description::parts> what, std::vector<io::row_reader> opened_readers)
    : parts(std::move(what)),
      readers(std::move(opened_readers)),
      shape(shape_of(readers)),
      supply(supply_rows(parts->from, parts->how, shape.rows, rows_of_parts(parts->from, readers), parts->faults)),
      rows(parts->how, shape, supply, parts->share) {
  if (rows.ranks() > 1 && parts->batch.last == last_batch::keep)
    throw std::invalid_argument(
        "processes need the same number of batches: let the last ones be padded or dropped (batch_options::last)");
  std::vector<stored_field> stored;
  for (const io::row_reader& reader : readers) stored.push_back({reader.element(), reader.row_shape()});
  on_host = wire(*parts, stored, true);
  on_cuda = wire(*parts, stored, false);
  if (!rows.is_pooled()) let_readers_convert(on_cuda);
  for (const std::size_t field : on_host.batch)
    shapes.push_back({on_host.device[field].name, on_host.device[field].element, on_host.device[field].row_shape});
}

opened description::open() const { return opened(std::make_unique<opened::impl>(parts_)); }

}  // namespace penstock::pipeline
