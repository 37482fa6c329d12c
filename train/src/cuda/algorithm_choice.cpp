#include "algorithm_choice.hpp"

#include "lt_handles.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

namespace penstock::train::cuda {
namespace {

using found_algorithm = cublasLtMatmulHeuristicResult_t;

/// cuBLASLt ranks its algorithms for a limit of workspace, and ranks well from what NVIDIA recommends for Hopper up: on
/// an H100, for a product of 1024 x 1024 by depth 16384 in float32, 16 MiB get one of 2531 us first, where 659 us need
/// no more than that. So it is asked with this limit, and those that fit are tried in its order.
constexpr std::size_t ranked_for_bytes = std::size_t{32} << 20;

lt_preference preference_of(const algorithm_request& request, std::size_t workspace_bytes) {
  cublasLtMatmulPreference_t native = nullptr;
  check(cublasLtMatmulPreferenceCreate(&native), "choosing an algorithm");
  lt_preference preference(native);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check(cublasLtMatmulPreferenceSetAttribute(native, attribute, &value, sizeof value), "choosing an algorithm");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, request.align_a);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, request.align_b);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, request.align_out);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, request.align_out);
  // Where the depth is split, the parts are summed in a fixed order, never added in place as they come.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE |
                                 CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE));
  return preference;
}

/// How many parts the depth is split into; 1, or an algorithm's own way, where it is not.
std::int32_t parts_of(const found_algorithm& found) {
  std::int32_t parts = 1;
  std::size_t written = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoConfigGetAttribute(&found.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM,
                                                                     &parts, sizeof parts, &written);
  return status == CUBLAS_STATUS_SUCCESS ? parts : 1;
}

bool fits(const algorithm_request& request, const found_algorithm& found) {
  return found.workspaceSize <= request.workspace_bytes &&
         (parts_of(found) < 2 || found.workspaceSize <= request.most_parts_bytes);
}

/// Halves the parts until their sums fit, as long as the device is still given about all that it takes at once.
bool fits_in_fewer_parts(const algorithm_request& request, found_algorithm& found) {
  constexpr float about_a_wave = 0.9F;
  while (!fits(request, found)) {
    const std::int32_t parts = parts_of(found) / 2;
    if (parts < 2) return false;
    cublasLtMatmulAlgo_t fewer = found.algo;
    if (cublasLtMatmulAlgoConfigSetAttribute(&fewer, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &parts, sizeof parts) !=
            CUBLAS_STATUS_SUCCESS ||
        cublasLtMatmulAlgoCheck(request.lt, request.description, request.a, request.b, request.out, request.out, &fewer,
                                &found) != CUBLAS_STATUS_SUCCESS ||
        found.wavesCount < about_a_wave)
      return false;
    found.algo = fewer;
  }
  return true;
}

/// Adds those that fit, as they rank for a limit of workspace.
void add_ranked_for(std::size_t workspace_bytes, const algorithm_request& request,
                    std::vector<cublasLtMatmulAlgo_t>& all) {
  const lt_preference preference = preference_of(request, workspace_bytes);
  std::array<found_algorithm, 16> found{};
  int count = 0;
  if (cublasLtMatmulAlgoGetHeuristic(request.lt, request.description, request.a, request.b, request.out, request.out,
                                     preference.native(), static_cast<int>(found.size()), found.data(),
                                     &count) != CUBLAS_STATUS_SUCCESS)
    return;
  for (found_algorithm& each : std::span(found).first(static_cast<std::size_t>(count)))
    if (each.state == CUBLAS_STATUS_SUCCESS && fits_in_fewer_parts(request, each)) all.push_back(each.algo);
}

}  // namespace

std::vector<cublasLtMatmulAlgo_t> algorithms_for(const algorithm_request& request) {
  std::vector<cublasLtMatmulAlgo_t> all;
  add_ranked_for(std::max(ranked_for_bytes, request.workspace_bytes), request, all);
  add_ranked_for(request.workspace_bytes, request, all);  // all of those may want more than there is
  algorithm_request any = request;                        // a product in too many parts is better than none
  any.most_parts_bytes = std::numeric_limits<std::size_t>::max();
  add_ranked_for(request.workspace_bytes, any, all);
  return all;
}

}  // namespace penstock::train::cuda
