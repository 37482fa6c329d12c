#include <penstock/gpu/range.hpp>

#include <nvtx3/nvToolsExt.h>

namespace penstock::gpu {
namespace {

nvtxDomainHandle_t domain() noexcept {
  static const nvtxDomainHandle_t handle = nvtxDomainCreateA("penstock");
  return handle;
}

}  // namespace

void range::push(const char* name) noexcept {
  nvtxEventAttributes_t what{};
  what.version = NVTX_VERSION;
  what.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  what.messageType = NVTX_MESSAGE_TYPE_ASCII;
  what.message.ascii = name;
  nvtxDomainRangePushEx(domain(), &what);
}

void range::pop() noexcept { nvtxDomainRangePop(domain()); }

}  // namespace penstock::gpu
