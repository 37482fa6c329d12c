#include "open_hdf5.hpp"

#include "descriptor.hpp"
#include "read_driver.hpp"

#include <fmt/format.h>

#include <cerrno>

namespace penstock::io {
namespace {

bool says(const std::string& messages, std::string_view part) { return messages.find(part) != std::string::npos; }

std::string last_line(const std::string& messages) { return messages.substr(messages.rfind('\n') + 1); }

/// libhdf5's messages as one sentence.
std::string explain(const std::string& messages) {
  if (says(messages, "truncated file"))
    return fmt::format("it is truncated ({}); copy or write it again", last_line(messages));
  if (says(messages, "already open for write") || says(messages, "already open for SWMR"))
    return "it is marked as open for writing: wait for its writer, or, where that ended without closing it, clear the "
           "mark "
           "with h5clear -s";
  if (says(messages, "driver should be used"))
    return fmt::format("it was written in parts by another file driver ({}); join the parts with h5repart or h5repack",
                       last_line(messages));
  return fmt::format("libhdf5 cannot open it ({}); check it with h5dump -H, or copy it again", last_line(messages));
}

}  // namespace

file_id open_hdf5(const std::filesystem::path& path, const fault_seam& faults) {
  const library_guard guard;
  const property_id access = read_only_access(faults);
  take_driver_error();
  file_id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.native()));
  if (!file) {
    const int system = take_driver_error();
    const std::string messages = library_messages();
    throw failure(system == 0     ? explain(messages)
                  : system == EIO ? why_unread(system, messages)  // it opened
                                  : not_opened(system),
                  system, messages);
  }
  return file;
}

}  // namespace penstock::io
