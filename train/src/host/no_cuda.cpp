#include "../backend.hpp"
#include "../stage_memory.hpp"
#include "backend.hpp"

namespace penstock::train {

// The build without CUDA: no device but the host can be asked for.

void check_arithmetic(gpu::device, precision) {}

std::size_t column_sum_elements(gpu::device, std::size_t, std::size_t) { return 0; }

template <class S>
std::unique_ptr<backend<S>> make_backend(gpu::stream_ref, const stage_options& options, const backend_memory&) {
  return host::make_backend<S>(options.threads);
}
template std::unique_ptr<backend<float>> make_backend(gpu::stream_ref, const stage_options&, const backend_memory&);
template std::unique_ptr<backend<double>> make_backend(gpu::stream_ref, const stage_options&, const backend_memory&);
template std::unique_ptr<backend<bfloat16>> make_backend(gpu::stream_ref, const stage_options&, const backend_memory&);
template std::unique_ptr<backend<float16>> make_backend(gpu::stream_ref, const stage_options&, const backend_memory&);

}  // namespace penstock::train
