#include "source_files.hpp"

#include "virtual_mapping.hpp"

namespace penstock::io {

std::optional<std::filesystem::path> find_source(const std::filesystem::path& written,
                                                 const std::filesystem::path& owner) {
  std::error_code ignored;
  if (written.is_absolute()) {
    if (std::filesystem::exists(written, ignored)) return written;
    if (const auto beside = owner.parent_path() / written.filename(); std::filesystem::exists(beside, ignored))
      return beside;
    return std::nullopt;
  }
  if (const auto beside = owner.parent_path() / written; std::filesystem::exists(beside, ignored)) return beside;
  if (std::filesystem::exists(written, ignored)) return written;
  return std::nullopt;
}

std::vector<std::string> absent_sources(hid_t dataset, const std::filesystem::path& owner) {
  const library_guard guard;
  const property_id creation(checked(H5Dget_create_plist(dataset), "its properties cannot be read"));
  std::vector<std::string> absent;
  if (const auto mappings = read_virtual_mappings(creation.native()))
    for (const auto& m : *mappings)
      if (m.file != "." && !find_source(m.file, owner)) absent.push_back(m.file + ":" + m.dataset);
  return absent;
}

}  // namespace penstock::io
