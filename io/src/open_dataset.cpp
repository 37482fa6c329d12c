#include "describe.hpp"
#include "read_driver.hpp"

#include <fmt/format.h>

namespace penstock::io {
namespace {

/// What the system does not give is not missing.
void refuse_unread(const std::string& messages) {
  const int system = take_driver_error();
  if (!is_absence(system)) throw failure(why_unread(system, messages), system, messages);
}

dataset_id open_exactly(hid_t file, const std::string& path) {
  take_driver_error();
  const object_id object(H5Oopen(file, path.c_str(), H5P_DEFAULT));
  if (!object) {
    const auto messages = library_messages();
    refuse_unread(messages);
    const bool missing =
        messages.find("doesn't exist") != std::string::npos || messages.find("object not found") != std::string::npos;
    throw failure(missing ? "there is no such dataset in the file" : why_not_opened(messages), 0, messages);
  }
  if (H5Iget_type(object.native()) == H5I_GROUP) throw failure("it is a group, no dataset");
  dataset_id dataset(H5Dopen2(file, path.c_str(), H5P_DEFAULT));
  if (!dataset) {
    const auto messages = library_messages();
    refuse_unread(messages);
    throw failure("it is no dataset that can be opened", 0, messages);
  }
  return dataset;
}

}  // namespace

open_dataset::open_dataset(hid_t file, const std::string& name) : path(name), object(name) {
  const library_guard guard;
  try {
    id = open_exactly(file, name);
  } catch (const failure& e) {
    if (!is_absence(e.system)) throw;
    // A dataset's own name may end like that: it was tried first.
    const auto bracket = name.ends_with(']') ? name.rfind('[') : std::string::npos;
    if (bracket == std::string::npos || bracket == 0) throw;
    object = name.substr(0, bracket);
    member = name.substr(bracket + 1, name.size() - bracket - 2);
    id = open_exactly(file, object);
  }
}

}  // namespace penstock::io
