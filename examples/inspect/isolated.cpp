#include "isolated.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace examples {
namespace {

// A file that takes so many times its processor time by the clock waits for something. Beyond `most_seconds` nobody
// means a limit.
constexpr std::uint64_t clock_factor = 10, most_seconds = 100'000'000;

[[noreturn]] void failed(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

void limit(__rlimit_resource_t what, rlim_t most) {
  ::rlimit now{};
  if (::getrlimit(what, &now) != 0) return;
  now.rlim_cur = std::min(most, now.rlim_max);
  ::setrlimit(what, &now);
}

/// Address space that this process has.
std::uint64_t mapped_bytes() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void limit_memory(std::uint64_t bytes) {
  std::uint64_t all = 0;
  if (!__builtin_add_overflow(mapped_bytes(), bytes, &all)) limit(RLIMIT_AS, all);
}

void be_the_child(const std::array<int, 2>& errors, pid_t parent, const child_limits& limits) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // who ends the parent means both
  if (::getppid() != parent) ::_exit(EXIT_FAILURE);
  ::dup2(errors[1], STDERR_FILENO);
  ::close(errors[0]);
  ::close(errors[1]);
  limit(RLIMIT_CORE, 0);  // a crash is expected here: nobody wants its core
  if (limits.seconds > 0) limit(RLIMIT_CPU, limits.seconds);
  if (limits.memory_bytes > 0) limit_memory(limits.memory_bytes);
}

using steady = std::chrono::steady_clock;

/// Whether there is something to read, or an end, before `until`.
bool comes_before(int errors, steady::time_point until) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady::now()).count();
    pollfd one{errors, POLLIN, 0};
    const int found = ::poll(&one, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000)));
    if (found != 0 && !(found < 0 && errno == EINTR)) return true;
    if (steady::now() >= until) return false;
  }
}

/// What the child says on its error output, until that is closed or, with `seconds`, their time has passed: the child
/// is killed then. The C library may have last words of its own there.
std::string said_in(int errors, pid_t child, std::uint64_t seconds, bool& is_late) {
  const auto until = steady::now() + std::chrono::seconds(seconds);
  std::string said;
  std::array<char, 4096> part;
  for (;;) {
    if (seconds > 0 && !is_late && !comes_before(errors, until)) {
      is_late = true;
      ::kill(child, SIGKILL);
    }
    const ssize_t got = ::read(errors, part.data(), part.size());
    if (got == 0 || (got < 0 && errno != EINTR)) break;
    if (got > 0) said.append(part.data(), static_cast<std::size_t>(got));
  }
  ::close(errors);
  return said;
}

bool is_crash(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGABRT || signal == SIGFPE || signal == SIGILL ||
         signal == SIGTRAP || signal == SIGSYS;
}

/// What a signal that ended the child says of the file; nothing where it is none of the file's.
std::string verdict_of(int signal, std::uint64_t seconds) {
  if (is_crash(signal))
    return fmt::format("libhdf5 crashed on it ({}); it is damaged, or made to do that: open it nowhere else",
                       ::strsignal(signal));
  if (signal == SIGXCPU && seconds > 0)
    return fmt::format(
        "it was not read after {} s of processor time; it is damaged, or made to take for ever, or "
        "large: --seconds allows more",
        seconds);
  if (signal == SIGKILL)
    return "the process that read it was killed, as by a system whose memory is used up; it is damaged, or made to "
           "take all of it, unless somebody did that: --memory allows less";
  return {};
}

}  // namespace

void go_on_in_child(const std::string& file, const child_limits& limits) {
  const std::uint64_t seconds = limits.seconds;
  std::fflush(nullptr);  // or both would write what is buffered
  std::array<int, 2> errors{};
  if (::pipe(errors.data()) != 0) failed("a pipe to a child process cannot be made");
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) failed("a child process cannot be started");
  if (child == 0) return be_the_child(errors, parent, limits);
  ::close(errors[1]);
  bool is_late = false;
  const std::uint64_t by_the_clock = seconds < most_seconds ? clock_factor * seconds : 0;
  const std::string said = said_in(errors[0], child, by_the_clock, is_late);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) failed("the child process is lost");
  if (is_late)
    throw std::runtime_error(
        fmt::format("{}: it was not read after {} s; it waits for something that does not come, as for who writes to a "
                    "pipe, or its disk is slow: --seconds allows more",
                    file, by_the_clock));
  if (WIFSIGNALED(status)) {
    const std::string verdict = verdict_of(WTERMSIG(status), seconds);
    if (!verdict.empty()) throw std::runtime_error(fmt::format("{}: {}", file, verdict));
    std::signal(WTERMSIG(status), SIG_DFL);
    std::raise(WTERMSIG(status));
  }
  std::fputs(said.c_str(), stderr);
  std::exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE);
}

}  // namespace examples
