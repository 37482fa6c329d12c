#include <penstock/gpu/stream.hpp>

#include "../cuda_backend.hpp"
#include "call.hpp"

namespace penstock::gpu::cuda {

CUstream_st* create_stream(int ordinal, bool high_priority, fault_injector* faults) {
  const caller call(ordinal, faults);
  int lowest = 0, highest = 0;
  call("cudaDeviceGetStreamPriorityRange", [&] { return cudaDeviceGetStreamPriorityRange(&lowest, &highest); });
  cudaStream_t stream = nullptr;
  call("cudaStreamCreateWithPriority",
       [&] { return cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, high_priority ? highest : lowest); });
  return stream;
}

void destroy(CUstream_st* stream) noexcept { cudaStreamDestroy(stream); }

void synchronize(stream_ref stream) {
  const caller call(stream.device().ordinal(), stream.faults());
  call("cudaStreamSynchronize", [&] { return cudaStreamSynchronize(stream.native()); });
}

void work_beside_captures(int ordinal, fault_injector* faults) {
  const caller call(ordinal, faults);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  call("cudaThreadExchangeStreamCaptureMode", [&] { return cudaThreadExchangeStreamCaptureMode(&mode); });
}

CUevent_st* create_event(int ordinal, event_use use, fault_injector* faults) {
  const caller call(ordinal, faults);
  const unsigned flags = (use == event_use::waiting ? static_cast<unsigned>(cudaEventBlockingSync) : 0U) |
                         (use == event_use::timing ? 0U : static_cast<unsigned>(cudaEventDisableTiming));
  cudaEvent_t event = nullptr;
  call("cudaEventCreateWithFlags", [&] { return cudaEventCreateWithFlags(&event, flags); });
  return event;
}

void destroy(CUevent_st* event) noexcept { cudaEventDestroy(event); }

void record(CUevent_st* event, stream_ref stream) {
  const caller call(stream.device().ordinal(), stream.faults());
  call("cudaEventRecord", [&] { return cudaEventRecord(event, stream.native()); });
}

void hold(stream_ref stream, CUevent_st* event) {
  const caller call(stream.device().ordinal(), stream.faults());
  call("cudaStreamWaitEvent", [&] { return cudaStreamWaitEvent(stream.native(), event, 0); });
}

bool is_done(int ordinal, CUevent_st* event, fault_injector* faults) {
  const caller call(ordinal, faults);
  const call_site site = "cudaEventQuery";
  const cudaError_t code = call.result_of(site, [&] { return cudaEventQuery(event); });
  if (code == cudaErrorNotReady) cudaGetLastError();  // an answer, not an error
  if (code != cudaSuccess && code != cudaErrorNotReady) fail(site, ordinal, code);
  return code == cudaSuccess;
}

void synchronize(int ordinal, CUevent_st* event, fault_injector* faults) {
  const caller call(ordinal, faults);
  call("cudaEventSynchronize", [&] { return cudaEventSynchronize(event); });
}

double milliseconds_between(int ordinal, CUevent_st* first, CUevent_st* last) {
  float milliseconds = 0;
  const caller call(ordinal);
  call("cudaEventElapsedTime", [&] { return cudaEventElapsedTime(&milliseconds, first, last); });
  return milliseconds;
}

}  // namespace penstock::gpu::cuda
