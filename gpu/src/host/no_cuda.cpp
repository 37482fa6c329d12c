#include <penstock/gpu/error.hpp>

#include "../cuda_backend.hpp"

namespace penstock::gpu::cuda {
namespace {

constexpr const char* reason = "this build of Penstock holds no CUDA backend";

[[noreturn]] void refuse() {
  throw error(std::string(reason) + "; configure it with the CUDA Toolkit, or use the device 'host'");
}

}  // namespace

census count_devices() noexcept { return {0, reason}; }
std::string device_name(int) { refuse(); }
memory_size memory_of(int) { refuse(); }
int roomiest_device(int) { refuse(); }

CUstream_st* create_stream(int, bool, fault_injector*) { refuse(); }
void destroy(CUstream_st*) noexcept {}
void synchronize(stream_ref) { refuse(); }
void work_beside_captures(int, fault_injector*) { refuse(); }

CUevent_st* create_event(int, event_use, fault_injector*) { refuse(); }
void destroy(CUevent_st*) noexcept {}
void record(CUevent_st*, stream_ref) { refuse(); }
void hold(stream_ref, CUevent_st*) { refuse(); }
bool is_done(int, CUevent_st*, fault_injector*) { refuse(); }
void synchronize(int, CUevent_st*, fault_injector*) { refuse(); }
double milliseconds_between(int, CUevent_st*, CUevent_st*) { refuse(); }

void* allocate_device(int, std::size_t, fault_injector*) { refuse(); }
void free_device(void*) noexcept {}
void* allocate_pinned(int, std::size_t, fault_injector*) { refuse(); }
void free_pinned(void*) noexcept {}

void copy(stream_ref, void*, const void*, std::size_t) { refuse(); }
void fill(stream_ref, void*, int, std::size_t) { refuse(); }

kernel_graphs* create_kernel_graphs() { refuse(); }
void destroy(kernel_graphs*) noexcept {}
void gather(stream_ref, const gather_plan&, kernel_graphs&) { refuse(); }

}  // namespace penstock::gpu::cuda
