#include "device_stall.hpp"

#include <algorithm>
#include <bit>

namespace penstock::pipeline {
namespace {

constexpr std::uint64_t period = 64;

}  // namespace

bool device_stall::is_sampled() {
  ++sums_.waits;
  ++since_last_;
  return std::has_single_bit(sums_.waits) || sums_.waits % period == 0;
}

void device_stall::pass() {
  if (!is_sampled()) return;
  ++sums_.samples;
  since_last_ = 0;
}

/// None where earlier ones have not happened yet: the next sample then stands for this one too.
device_stall::sample* device_stall::free_sample() {
  const auto found = std::find_if(open_.begin(), open_.end(), [](const sample& s) { return s.stands_for == 0; });
  if (found != open_.end()) return &*found;
  if (open_.size() == most_open) return nullptr;
  return &open_.emplace_back(sample{gpu::event(device_, gpu::event_use::timing, faults_),
                                    gpu::event(device_, gpu::event_use::timing, faults_)});
}

void device_stall::hold(gpu::stream_ref stream, const gpu::event& event) {
  if (!is_sampled()) return event.hold(stream);
  collect();
  sample* const timed = free_sample();
  if (timed == nullptr) return event.hold(stream);
  timed->before.record(stream);
  event.hold(stream);
  timed->after.record(stream);
  timed->stands_for = since_last_;
  since_last_ = 0;
}

void device_stall::collect() {
  for (sample& s : open_) {
    if (s.stands_for == 0 || !s.after.done()) continue;
    const double seconds = gpu::milliseconds_between(s.before, s.after) * 1e-3;
    ++sums_.samples;
    sums_.seconds += seconds * static_cast<double>(s.stands_for);
    s.stands_for = 0;
  }
}

}  // namespace penstock::pipeline
