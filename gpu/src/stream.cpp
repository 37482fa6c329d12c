#include <penstock/gpu/error.hpp>
#include <penstock/gpu/stream.hpp>

#include <fmt/format.h>

#include <stdexcept>

#include "cuda_backend.hpp"
#include "host/work.hpp"

namespace penstock::gpu {

void stream_ref::synchronize() const {
  if (device_.is_cuda()) return cuda::synchronize(*this);
  host::begin("cudaStreamSynchronize", faults_);
}

void stream_traits::release(native_type native) noexcept { cuda::destroy(native); }

stream::stream(gpu::device d, bool high_priority, fault_seam faults) : device_(d), faults_(std::move(faults)) {
  if (d.is_cuda())
    native_.reset(cuda::create_stream(d.ordinal(), high_priority, faults_.get()));
  else
    host::begin("cudaStreamCreateWithPriority", faults_.get());
}

void event_traits::release(native_type native) noexcept { cuda::destroy(native); }

void work_beside_captures(device d, fault_injector* faults) {
  if (d.is_cuda()) return cuda::work_beside_captures(d.ordinal(), faults);
  host::begin("cudaThreadExchangeStreamCaptureMode", faults);
}

event::event(gpu::device d, event_use use, fault_seam faults) : device_(d), faults_(std::move(faults)) {
  if (d.is_cuda())
    native_.reset(cuda::create_event(d.ordinal(), use, faults_.get()));
  else
    host::begin("cudaEventCreateWithFlags", faults_.get());
}

void event::record(stream_ref stream) {
  if (stream.device() != device_)
    throw std::invalid_argument(
        fmt::format("an event of {} cannot be recorded on a stream of {}", device_.name(), stream.device().name()));
  if (device_.is_cuda()) return cuda::record(native_.native(), stream);
  host::begin("cudaEventRecord", stream.faults());
}

void event::hold(stream_ref stream) const {
  if (device_.is_cuda() && stream.device().is_host())
    throw std::invalid_argument("the host's stream cannot wait for an event of " + device_.name() +
                                "; call event::synchronize()");
  if (device_.is_cuda()) return cuda::hold(stream, native_.native());
  host::begin("cudaStreamWaitEvent", stream.faults());
}

bool event::done() const {
  if (device_.is_cuda()) return cuda::is_done(device_.ordinal(), native_.native(), faults_.get());
  host::begin("cudaEventQuery", faults_.get());
  return true;
}

void event::synchronize() const {
  if (device_.is_cuda()) return cuda::synchronize(device_.ordinal(), native_.native(), faults_.get());
  host::begin("cudaEventSynchronize", faults_.get());
}

double milliseconds_between(const event& first, const event& last) {
  if (first.device_ != last.device_)
    throw std::invalid_argument(
        fmt::format("there is no time between events of {} and {}", first.device_.name(), last.device_.name()));
  if (first.device_.is_host()) return 0;
  return cuda::milliseconds_between(first.device_.ordinal(), first.native_.native(), last.native_.native());
}

}  // namespace penstock::gpu
