#include <penstock/io/attribute.hpp>

#include "open_hdf5.hpp"

#include <cstring>

namespace penstock::io {
namespace {

std::string read_text(hid_t attribute) {
  const type_id stored(checked(H5Aget_type(attribute), "the attribute has no type"));
  if (H5Tget_class(stored.native()) != H5T_STRING) throw failure("the attribute is no text");
  const space_id space(checked(H5Aget_space(attribute), "the attribute has no shape"));
  if (H5Sget_simple_extent_npoints(space.native()) != 1) throw failure("the attribute is not one text");
  if (H5Tis_variable_str(stored.native()) > 0) {
    const type_id memory(checked(H5Tcopy(stored.native()), "a type cannot be copied"));
    char* text = nullptr;
    checked(H5Aread(attribute, memory.native(), &text), "the attribute cannot be read");
    std::string result = text != nullptr ? text : "";
    H5Dvlen_reclaim(memory.native(), space.native(), H5P_DEFAULT, &text);
    return result;
  }
  std::string text(H5Tget_size(stored.native()), '\0');
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
  with_context({.file = file.string()}, [&] { probe(file); });
  return with_context(context, [&]() -> std::optional<std::string> {
    const library_guard guard;
    const file_id opened = open_hdf5(file);
    if (!leads_somewhere(opened.native(), object_path)) return std::nullopt;
    const object_id owner(
        checked(H5Oopen(opened.native(), std::string(object_path).c_str(), H5P_DEFAULT), "it cannot be opened"));
    const std::string key(name);
    if (H5Aexists(owner.native(), key.c_str()) <= 0) return std::nullopt;
    const attribute_id id(checked(H5Aopen(owner.native(), key.c_str(), H5P_DEFAULT), "the attribute cannot be opened"));
    return read_text(id.native());
  });
}

}  // namespace penstock::io
