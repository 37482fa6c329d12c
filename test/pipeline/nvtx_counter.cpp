// A library that NVTX loads in a profiler's place (NVTX_INJECTION64_PATH): it counts pushes and pops of the ranges of
// the domain "penstock", by name.

#include <nvtx3/nvToolsExt.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

struct counts {
  std::uint64_t pushed = 0, popped = 0;
};

std::mutex mutex;
std::map<std::string, counts> all;
thread_local std::vector<std::string> open;
char domain;  // its address tells it

nvtxDomainHandle_t NVTX_API create_domain(const char* name) {
  return std::strcmp(name, "penstock") == 0 ? reinterpret_cast<nvtxDomainHandle_t>(&domain) : nullptr;
}

int NVTX_API push(nvtxDomainHandle_t of, const nvtxEventAttributes_t* what) {
  if (of != reinterpret_cast<nvtxDomainHandle_t>(&domain)) return 0;
  const std::lock_guard lock(mutex);
  open.emplace_back(what->message.ascii);
  ++all[open.back()].pushed;
  return static_cast<int>(open.size()) - 1;
}

int NVTX_API pop(nvtxDomainHandle_t of) {
  if (of != reinterpret_cast<nvtxDomainHandle_t>(&domain)) return 0;
  const std::lock_guard lock(mutex);
  ++all[open.empty() ? "popped and never pushed" : open.back()].popped;
  if (!open.empty()) open.pop_back();
  return static_cast<int>(open.size());
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) std::uint64_t penstock_nvtx_pushed(const char* name) {
  const std::lock_guard lock(mutex);
  return all[name].pushed;
}

__attribute__((visibility("default"))) std::uint64_t penstock_nvtx_popped(const char* name) {
  const std::lock_guard lock(mutex);
  return all[name].popped;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t table_of) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(table_of(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 0;
  if (size <= NVTX_CBID_CORE2_DomainCreateA) return 0;
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = reinterpret_cast<NvtxFunctionPointer>(push);
  *table[NVTX_CBID_CORE2_DomainRangePop] = reinterpret_cast<NvtxFunctionPointer>(pop);
  *table[NVTX_CBID_CORE2_DomainCreateA] = reinterpret_cast<NvtxFunctionPointer>(create_domain);
  return 1;
}

}  // extern "C"
