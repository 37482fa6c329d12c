#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

namespace penstock::test {

/// Ends the program with the case's name where it hangs: a case that lives for `most` is not slow, it waits for
/// something that does not come.
class watchdog {
 public:
  explicit watchdog(std::string what, std::chrono::seconds most = std::chrono::seconds(120))
      : thread_([this, what = std::move(what), most](std::stop_token stop) {
          std::unique_lock lock(mutex_);
          if (ended_.wait_for(lock, stop, most, [] { return false; }) || stop.stop_requested()) return;
          std::cerr << "hangs: " << what << std::endl;
          std::abort();
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread thread_;
};

}  // namespace penstock::test
