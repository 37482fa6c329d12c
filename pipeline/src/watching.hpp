#pragma once

#include <chrono>

namespace penstock::pipeline {

/// How long who has a processor to itself watches for news before it sleeps: some blocks' time on the link.
inline constexpr std::chrono::microseconds watch{200};

/// A moment of a loop that watches: about half a microsecond, in which the other side's cache line is left alone.
inline void pause_processor() noexcept {
  constexpr int pauses = 16;
  for (int i = 0; i < pauses; ++i) __builtin_ia32_pause();
}

}  // namespace penstock::pipeline
