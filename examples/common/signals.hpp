#pragma once

#include <atomic>
#include <cstdint>
#include <stop_token>
#include <string>
#include <thread>

namespace examples {

/// Turns the first SIGINT, SIGTERM or SIGHUP into a stop request while it lives; a second one ends the program at once,
/// but within 0.2 s of the first, where it counts for the same one: `timeout` sends one to the program, and one to its
/// group. Those that the program was started to ignore stay ignored. At most one at a time.
class stop_on_signal {
 public:
  stop_on_signal() : stop_on_signal(std::string()) {}
  /// The same from begin() on. A signal before that ends the program at once, with this sentence and 128 + its number:
  /// files are opened and plans made for as long as that takes, and there is nothing to be kept.
  explicit stop_on_signal(const std::string& sentence);
  ~stop_on_signal();
  stop_on_signal(const stop_on_signal&) = delete;
  stop_on_signal& operator=(const stop_on_signal&) = delete;

  /// From here on a signal is a stop request, and there is something to be kept. Does not return where a signal came
  /// first and is ending the program: what it says of nothing being kept stays true.
  void begin() noexcept;

  std::stop_token token() const noexcept { return stop_.get_token(); }
  /// The signal that came, or 0.
  int signal() const noexcept { return signal_; }

 private:
  enum class phase : std::uint8_t {
    before,  ///< the work begins: a signal ends the program
    begun,   ///< a signal is a stop request
    ending   ///< a signal came before the work began
  };
  void wait();
  void end(int number) noexcept;

  const std::string before_it_began_;
  std::atomic<phase> phase_;
  std::stop_source stop_;
  std::atomic<int> signal_{0};
  int pipe_[2] = {-1, -1};
  std::thread thread_;
};

}  // namespace examples
