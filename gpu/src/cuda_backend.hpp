#pragma once

#include <penstock/gpu/device.hpp>
#include <penstock/gpu/stream.hpp>

#include <cstddef>
#include <string>

namespace penstock::gpu {
struct gather_plan;
}

/// The seam between gpu's sources and CUDA: src/cuda/ implements it with the runtime, src/host/no_cuda.cpp for builds
/// without. Only devices and handles that this backend gave out reach it, so that a build without it need only say that
/// there are none. Functions that take `faults` ask it before each CUDA call; all throw gpu::error where a call fails.
namespace penstock::gpu::cuda {

/// The devices that the process sees. Where there are none, `reason` says why.
struct census {
  int devices = 0;
  std::string reason;
};
census count_devices() noexcept;
std::string device_name(int ordinal);
memory_size memory_of(int ordinal);
/// The device with the most free memory; `devices` is at least 1. Leaves no context behind that was not there.
int roomiest_device(int devices);

CUstream_st* create_stream(int ordinal, bool high_priority, fault_injector* faults);
void destroy(CUstream_st* stream) noexcept;
void synchronize(stream_ref stream);

void work_beside_captures(int ordinal, fault_injector* faults);

CUevent_st* create_event(int ordinal, event_use use, fault_injector* faults);
void destroy(CUevent_st* event) noexcept;
void record(CUevent_st* event, stream_ref stream);
void hold(stream_ref stream, CUevent_st* event);
bool is_done(int ordinal, CUevent_st* event, fault_injector* faults);
void synchronize(int ordinal, CUevent_st* event, fault_injector* faults);
double milliseconds_between(int ordinal, CUevent_st* first, CUevent_st* last);

void* allocate_device(int ordinal, std::size_t bytes, fault_injector* faults);
void free_device(void* address) noexcept;
void* allocate_pinned(int ordinal, std::size_t bytes, fault_injector* faults);
void free_pinned(void* address) noexcept;

void copy(stream_ref stream, void* to, const void* from, std::size_t bytes);
void fill(stream_ref stream, void* to, int value, std::size_t bytes);

struct kernel_graphs;
kernel_graphs* create_kernel_graphs();
void destroy(kernel_graphs* graphs) noexcept;
void gather(stream_ref stream, const gather_plan& plan, kernel_graphs& graphs);

}  // namespace penstock::gpu::cuda
