#include "stream_marks.hpp"

namespace penstock::pipeline {

gpu::event* event_pool::take() {
  if (free_.empty()) {
    all_.push_back(std::make_unique<gpu::event>(device_, gpu::event_use::order, faults_));
    return all_.back().get();
  }
  gpu::event* event = free_.back();
  free_.pop_back();
  return event;
}

void stream_marks::record(gpu::stream_ref stream, std::uint64_t end) {
  gpu::event* event = events_.take();
  event->record(stream);
  marks_.push_back({end, event});
}

void stream_marks::hold(gpu::stream_ref stream, std::uint64_t position) {
  while (passed_ < position && !marks_.empty()) {
    const mark next = marks_.front();
    marks_.pop_front();
    if (next.end >= position || marks_.empty()) next.event->hold(stream);  // later marks speak for earlier ones
    events_.give_back(next.event);
    passed_ = next.end;
  }
}

std::uint64_t stream_marks::done() {
  while (!marks_.empty() && marks_.front().event->done()) {
    passed_ = marks_.front().end;
    events_.give_back(marks_.front().event);
    marks_.pop_front();
  }
  return passed_;
}

void stream_marks::reset() {
  for (const mark& old : marks_) events_.give_back(old.event);
  marks_.clear();
  passed_ = 0;
}

}  // namespace penstock::pipeline
