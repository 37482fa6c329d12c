#include "isolated.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace examples {
namespace {

[[noreturn]] void failed(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

void be_the_child(const std::array<int, 2>& errors) {
  ::dup2(errors[1], STDERR_FILENO);
  ::close(errors[0]);
  ::close(errors[1]);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);  // a crash is expected here: nobody wants its core
}

/// What the child says on its error output, until that is closed. The C library may have last words of its own there.
std::string said_in(int errors) {
  std::string said;
  std::array<char, 4096> part;
  for (ssize_t got = 0; (got = ::read(errors, part.data(), part.size())) != 0;) {
    if (got < 0 && errno != EINTR) break;
    if (got > 0) said.append(part.data(), static_cast<std::size_t>(got));
  }
  ::close(errors);
  return said;
}

}  // namespace

void go_on_in_child(const std::string& file) {
  std::fflush(nullptr);  // or both would write what is buffered
  std::array<int, 2> errors{};
  if (::pipe(errors.data()) != 0) failed("a pipe to a child process cannot be made");
  const pid_t child = ::fork();
  if (child < 0) failed("a child process cannot be started");
  if (child == 0) return be_the_child(errors);
  ::close(errors[1]);
  const std::string said = said_in(errors[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) failed("the child process is lost");
  if (WIFSIGNALED(status))
    throw std::runtime_error(
        fmt::format("{}: libhdf5 crashed on it ({}); it is damaged, or made to do that: open it "
                    "nowhere else",
                    file, ::strsignal(WTERMSIG(status))));
  std::fputs(said.c_str(), stderr);
  std::exit(WEXITSTATUS(status));
}

}  // namespace examples
