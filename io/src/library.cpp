#include "library.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <string_view>

namespace penstock::io {
namespace {

// libhdf5 keeps process-wide state without a lock of its own in most builds, so what guards it is process-wide too.
std::recursive_mutex& library_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

}  // namespace

library_guard::library_guard() : lock_(library_mutex()) {
  if (H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_) < 0) print_ = nullptr;
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

library_guard::~library_guard() {
  if (print_ != nullptr) H5Eset_auto2(H5E_DEFAULT, print_, print_data_);
}

std::string library_messages() {
  std::string text;
  const auto append = [](unsigned, const H5E_error2_t* entry, void* out) -> herr_t {
    auto& lines = *static_cast<std::string*>(out);
    if (entry->desc == nullptr) return 0;
    if (!lines.empty()) lines += '\n';
    lines += entry->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, append, &text);
  H5Eclear2(H5E_DEFAULT);
  return text;
}

std::string why_not_opened(const std::string& messages) {
  const auto last = messages.substr(messages.rfind('\n') + 1);
  if (!last.starts_with("bad version number"))
    return fmt::format("it cannot be opened ({}); check the file with h5dump -H", last);
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format(
      "it cannot be opened by HDF5 {}.{}.{} ({}): a newer one wrote it, or its header is damaged; write it for older "
      "ones, in h5py with libver=(\"earliest\", \"v110\")",
      major, minor, release, last);
}

library_cause library_cause_of_failure() {
  struct {
    hid_t memory = H5E_NOSPACE, file = H5E_CANTOPENFILE;
    library_cause found = library_cause::anything;
  } seen;
  const auto look = [](unsigned, const H5E_error2_t* entry, void* out) -> herr_t {
    auto& s = *static_cast<decltype(seen)*>(out);
    const std::string_view text = entry->desc != nullptr ? entry->desc : "";
    if (entry->min_num == s.memory) s.found = library_cause::memory;
    if (entry->min_num == s.file) s.found = library_cause::no_file;
    if (text.find("is not registered") != text.npos) s.found = library_cause::filter;  // it has no number of its own
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, look, &seen);
  return seen.found;
}

void throw_unread(int system, library_cause cause, const std::string& messages) {
  const auto sentence = fmt::format("libhdf5 cannot read it ({})", messages.substr(messages.rfind('\n') + 1));
  if (cause == library_cause::memory) throw failure(sentence, ENOMEM, messages);
  if (cause == library_cause::filter) throw failure(sentence, ENOTSUP, messages);
  if (cause == library_cause::no_file || (system != 0 && system != EIO)) throw failure(sentence, system, messages);
  throw damage(sentence, system, messages);
}

}  // namespace penstock::io
