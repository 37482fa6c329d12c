#include "signals.hpp"

#include <pthread.h>
#include <unistd.h>
#include <csignal>

namespace examples {
namespace {

sigset_t stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

stop_on_signal::stop_on_signal() {
  const sigset_t signals = stop_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  thread_ = std::thread([this] { wait(); });
}

stop_on_signal::~stop_on_signal() {
  over_ = true;
  pthread_kill(thread_.native_handle(), SIGTERM);  // wakes the thread
  thread_.join();
}

void stop_on_signal::wait() {
  const sigset_t signals = stop_signals();
  for (int taken = 0;;) {
    int number = 0;
    if (sigwait(&signals, &number) != 0 || over_) return;
    if (++taken > 1) _exit(128 + number);
    signal_ = number;
    stop_.request_stop();
  }
}

}  // namespace examples
