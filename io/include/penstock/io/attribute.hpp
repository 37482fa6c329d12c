#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::io {

/// The text of a fixed- or variable-length string attribute of a group or dataset ("/" is the file's); nothing where
/// the object or the attribute is not there. Throws io::error where the file does not open or the attribute is no text,
/// and where the file is damaged: no text is longer than its file, and libhdf5 does not follow what refers to one.
std::optional<std::string> read_attribute(const std::filesystem::path& file, std::string_view object_path,
                                          std::string_view name);

}  // namespace penstock::io
