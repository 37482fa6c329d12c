#include <penstock/io/attribute.hpp>

#include "global_heap.hpp"
#include "open_hdf5.hpp"
#include "raw_file.hpp"
#include "source_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace penstock::io {
namespace {

/// The file in which the attribute lies: a link may have led there.
std::string read_reference(hid_t attribute) {
  const file_id file(checked(H5Iget_file_id(attribute), "its file cannot be found"));
  const address_format format = address_format_of(file.native());
  std::vector<std::byte> stored(format.reference_bytes());
  checked(H5Aread(attribute, reference_memory(stored.size()).native(), stored.data()), "the attribute cannot be read");
  const text_reference where = decode_reference(stored, format);
  if (where.is_empty()) return {};
  const auto path = file_name_of(attribute);
  const raw_file raw(path, probe(path), {});
  global_heap heap(raw, raw.bytes(), format);
  if (heap.find(where) == nullptr) throw damage(heap.why());
  return heap.text();
}

std::string read_text(hid_t attribute, std::uint64_t file_bytes) {
  const type_id stored(checked(H5Aget_type(attribute), "the attribute has no type"));
  if (H5Tget_class(stored.native()) != H5T_STRING) throw failure("the attribute is no text");
  const space_id space(checked(H5Aget_space(attribute), "the attribute has no shape"));
  if (H5Sget_simple_extent_npoints(space.native()) != 1) throw failure("the attribute is not one text");
  if (H5Tis_variable_str(stored.native()) > 0) return read_reference(attribute);
  const std::size_t bytes = H5Tget_size(stored.native());
  if (bytes > file_bytes)
    throw failure(
        fmt::format("the attribute claims {} bytes, and its file has {}; the header is damaged", bytes, file_bytes));
  std::string text(bytes, '\0');
  checked(H5Aread(attribute, stored.native(), text.data()), "the attribute cannot be read");
  text.resize(std::strlen(text.c_str()));  // fixed-length texts are padded with zeros
  return text;
}

/// True where every component of `path` is a link that leads somewhere.
bool leads_somewhere(hid_t file, std::string_view path) {
  for (std::size_t slash = 1; slash <= path.size(); ++slash) {
    slash = std::min(path.find('/', slash), path.size());
    const std::string part(path.substr(0, slash));
    if (part.empty() || part == "/") continue;
    if (H5Lexists(file, part.c_str(), H5P_DEFAULT) <= 0 || H5Oexists_by_name(file, part.c_str(), H5P_DEFAULT) <= 0)
      return false;
  }
  return true;
}

}  // namespace

std::optional<std::string> read_attribute(const std::filesystem::path& file, std::string_view object_path,
                                          std::string_view name) {
  const error_context context{
      .file = file.string(), .dataset = std::string(object_path), .rows = {}, .hdf5 = {}, .system = 0};
  const auto file_bytes = with_context({.file = file.string()}, [&] { return probe(file).bytes; });
  return with_context(context, [&]() -> std::optional<std::string> {
    const library_guard guard;
    const file_id opened = open_hdf5(file);
    if (!leads_somewhere(opened.native(), object_path)) return std::nullopt;
    const object_id owner(
        checked(H5Oopen(opened.native(), std::string(object_path).c_str(), H5P_DEFAULT), "it cannot be opened"));
    const std::string key(name);
    if (H5Aexists(owner.native(), key.c_str()) <= 0) return std::nullopt;
    const attribute_id id(checked(H5Aopen(owner.native(), key.c_str(), H5P_DEFAULT), "the attribute cannot be opened"));
    return read_text(id.native(), file_bytes);
  });
}

}  // namespace penstock::io
