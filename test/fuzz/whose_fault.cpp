#include "whose_fault.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <sanitizer/common_interface_defs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace penstock::fuzz {
namespace {

constexpr int libhdf5s = 42, ours = 43;
constexpr std::size_t most_frames = 256;

/// The exit code of a child that is at fault now. Called in handlers of signals: it takes no memory.
int blame() {
  std::array<void*, most_frames> frames;
  const int count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  for (int n = 0; n < count; ++n) {
    Dl_info where{};
    if (::dladdr(frames[static_cast<std::size_t>(n)], &where) == 0) continue;
    if (where.dli_fname && std::strstr(where.dli_fname, "libhdf5")) return libhdf5s;
    // Symbols of Penstock and of its fuzz targets, but not of this file.
    const char* name = where.dli_sname ? where.dli_sname : "";
    if (std::strstr(name, "8penstock") && !std::strstr(name, "4fuzz")) return ours;
  }
  return ours;
}

void on_signal(int) { ::_exit(blame()); }
void on_report() { ::_exit(blame()); }

[[noreturn]] void be_the_child(const std::function<void()>& work, unsigned seconds) {
  static std::array<char, 1 << 16> stack;  // a call that never ends leaves no room on the other one
  const stack_t other{stack.data(), 0, stack.size()};
  ::sigaltstack(&other, nullptr);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM}) ::sigaction(number, &action, nullptr);
  __sanitizer_set_death_callback(on_report);
  const int nowhere = ::open("/dev/null", O_WRONLY);
  ::dup2(nowhere, STDERR_FILENO);  // the parent says what is a finding
  ::alarm(seconds);
  work();
  ::_exit(EXIT_SUCCESS);
}

}  // namespace

outcome try_in_child(const std::function<void()>& work, unsigned seconds) {
  const pid_t child = ::fork();
  if (child < 0) std::abort();
  if (child == 0) be_the_child(work, seconds);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) continue;
  if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS) return outcome::fine;
  return WIFEXITED(status) && WEXITSTATUS(status) == libhdf5s ? outcome::fault_of_libhdf5 : outcome::fault_of_penstock;
}

}  // namespace penstock::fuzz
