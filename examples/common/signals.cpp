#include "signals.hpp"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <system_error>

namespace examples {
namespace {

// A handler reaches nothing but globals, and may do little more than write. Blocking the signals for a thread that
// waits would not do: OpenBLAS starts threads before main().
volatile std::sig_atomic_t write_end = -1;
std::atomic<std::int64_t> first_nanoseconds = 0;  // when the first one came; 0: none did
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

/// `timeout` sends a signal to the program, and another to its group: who asks once is no less patient for that.
constexpr std::int64_t same_nanoseconds = 200'000'000;

extern "C" void on_signal(int number) {
  const int before = errno;
  struct timespec now {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t nanoseconds = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec + 1;
  std::int64_t first = 0;
  if (!first_nanoseconds.compare_exchange_strong(first, nanoseconds)) {
    if (nanoseconds - first >= same_nanoseconds) _exit(128 + number);
    errno = before;
    return;
  }
  const auto byte = static_cast<unsigned char>(number);
  [[maybe_unused]] const auto written = ::write(write_end, &byte, 1);
  errno = before;
}

constexpr int stopping[] = {SIGINT, SIGTERM, SIGHUP};

/// What is ignored stays so: nohup and shells ask for that.
void handle() {
  struct sigaction ours {
  }, before{};
  ours.sa_handler = on_signal;
  ours.sa_flags = SA_RESTART;
  sigemptyset(&ours.sa_mask);
  for (const int number : stopping)
    if (::sigaction(number, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) ::sigaction(number, &ours, nullptr);
}

void handle_no_longer() {
  struct sigaction before {};
  for (const int number : stopping)
    if (::sigaction(number, nullptr, &before) == 0 && before.sa_handler == on_signal) ::signal(number, SIG_DFL);
}

}  // namespace

stop_on_signal::stop_on_signal(const std::string& sentence)
    : before_it_began_(sentence + '\n'), phase_(sentence.empty() ? phase::begun : phase::before) {
  if (::pipe(pipe_) != 0) throw std::system_error(errno, std::generic_category(), "a pipe for signals cannot be made");
  write_end = pipe_[1];
  first_nanoseconds = 0;
  try {
    thread_ = std::thread([this] { wait(); });
  } catch (const std::system_error& e) {
    ::close(pipe_[0]);
    ::close(pipe_[1]);
    throw std::system_error(e.code(),
                            "no thread can be started to wait for signals; higher limits may help (ulimit -u, -v)");
  }
  handle();
}

stop_on_signal::~stop_on_signal() {
  handle_no_longer();
  const unsigned char over = 0;
  [[maybe_unused]] const auto written = ::write(pipe_[1], &over, 1);
  thread_.join();
  ::close(pipe_[0]);
  ::close(pipe_[1]);
}

void stop_on_signal::begin() noexcept {
  phase there = phase::before;
  phase_.compare_exchange_strong(there, phase::begun);
  while (there == phase::ending) ::pause();  // the thread ends the program, as soon as its sentence is written
}

void stop_on_signal::end(int number) noexcept {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, before_it_began_.data(), before_it_began_.size());
  ::_exit(128 + number);
}

void stop_on_signal::wait() {
  unsigned char number = 0;
  while (::read(pipe_[0], &number, 1) == 1 && number != 0) {
    phase there = phase::before;
    if (phase_.compare_exchange_strong(there, phase::ending)) end(number);
    signal_ = number;
    stop_.request_stop();
  }
}

}  // namespace examples
