#pragma once

#include "failure.hpp"

#include <hdf5.h>

#include <cstdint>
#include <mutex>
#include <string>

namespace penstock::io {

/// Holds libhdf5 for the calling thread: every call into it, closes too, is made while one of these lives, since builds
/// of libhdf5 are often not thread-safe. Recursive. While held, libhdf5 prints nothing; the caller's own setting is put
/// back.
class library_guard {
 public:
  library_guard();
  ~library_guard();
  library_guard(const library_guard&) = delete;
  library_guard& operator=(const library_guard&) = delete;

 private:
  std::unique_lock<std::recursive_mutex> lock_;
  H5E_auto2_t print_ = nullptr;
  void* print_data_ = nullptr;
};

/// The messages on libhdf5's error stack, outermost first, one a line; empties the stack. Needs the guard.
std::string library_messages();

/// Why an object was not opened, in a sentence, of such messages. Needs the guard.
std::string why_not_opened(const std::string& messages);

/// What libhdf5's error stack, which stays, lays a failure to. Needs the guard.
enum class library_cause : std::uint8_t {
  memory,    ///< it could not allocate
  filter,    ///< a filter that has no plugin
  no_file,   ///< one of several files could not be opened
  anything,  ///< that may lie in what is stored
};
library_cause library_cause_of_failure();
/// Throws what a read by libhdf5 failed with: the driver's errno or 0, and what the error stack said. What is not known
/// to have another cause is damage.
[[noreturn]] void throw_unread(int system, library_cause cause, const std::string& messages);

/// `result`, or a failure with `sentence` and libhdf5's messages where it is negative. Needs the guard.
template <class Result>
Result checked(Result result, const char* sentence) {
  if (result < 0) throw failure(sentence, 0, library_messages());
  return result;
}

}  // namespace penstock::io
