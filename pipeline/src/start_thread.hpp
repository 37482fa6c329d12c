#pragma once

#include <penstock/pipeline/error.hpp>

#include <fmt/format.h>

#include <exception>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace penstock::pipeline {

/// What is thrown where the system gives no thread; within a catch, whose exception is the cause.
inline error no_thread(std::string_view purpose, std::string_view why) {
  return {fmt::format("no thread can be started for {}: {}; fewer threads or less memory elsewhere, or higher limits "
                      "(ulimit -u, ulimit -v) would help",
                      purpose, why),
          {"build", 0, 0, 0, {}},
          std::current_exception()};
}

/// A thread. Throws pipeline::error where the system gives none.
template <class F>
std::thread start_thread(std::string_view purpose, F work) try {
  return std::thread(std::move(work));
} catch (const std::system_error& e) {
  throw no_thread(purpose, e.code().message());
}

}  // namespace penstock::pipeline
