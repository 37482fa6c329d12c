#include "product_candidates.hpp"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace penstock::benchmark {
namespace {

void check(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(cublasLtGetStatusString(status));
}
void check(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}

/// A product as cuBLASLt sees it: by columns, D of m x n, depth k.
struct shape {
  const char* name;
  std::size_t m, n, k;
  bool transpose_a, transpose_b;
  cublasLtEpilogue_t epilogue;
  bool float_out;  ///< D is float32 whatever the factors are
};

class bench {
 public:
  bench(train::precision arithmetic, std::size_t most_values, std::size_t workspace_bytes)
      : arithmetic_(arithmetic), workspace_bytes_(workspace_bytes) {
    check(cublasLtCreate(&lt_));
    for (void** each : {&a_, &b_, &d_, &bias_, &mask_}) {
      check(cudaMalloc(each, most_values * sizeof(float)));
      check(cudaMemset(*each, 0x11, most_values * sizeof(float)));
    }
    check(cudaMalloc(&workspace_, workspace_bytes));
    check(cudaEventCreate(&first_));
    check(cudaEventCreate(&last_));
  }
  bench(const bench&) = delete;
  bench& operator=(const bench&) = delete;
  ~bench() {
    for (void* each : {a_, b_, d_, bias_, mask_, workspace_}) cudaFree(each);
    cudaEventDestroy(first_);
    cudaEventDestroy(last_);
    cublasLtDestroy(lt_);
  }

  void print(const shape& s) {
    const bool narrow = arithmetic_ == train::precision::bf16 || arithmetic_ == train::precision::fp16;
    const cudaDataType_t factor = arithmetic_ == train::precision::bf16   ? CUDA_R_16BF
                                  : arithmetic_ == train::precision::fp16 ? CUDA_R_16F
                                                                          : CUDA_R_32F;
    const cudaDataType_t out = narrow && !s.float_out ? factor : CUDA_R_32F;
    cublasLtMatmulDesc_t what = nullptr;
    check(cublasLtMatmulDescCreate(
        &what, arithmetic_ == train::precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const cublasOperation_t op_a = s.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                            op_b = s.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    set(what, CUBLASLT_MATMUL_DESC_TRANSA, op_a);
    set(what, CUBLASLT_MATMUL_DESC_TRANSB, op_b);
    set(what, CUBLASLT_MATMUL_DESC_EPILOGUE, s.epilogue);
    if (s.epilogue != CUBLASLT_EPILOGUE_DEFAULT && s.epilogue != CUBLASLT_EPILOGUE_DRELU)  // refused with a bias
      set(what, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias_);
    if ((s.epilogue & 128) != 0) {
      set(what, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, mask_);
      set(what, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, static_cast<std::int64_t>((s.m + 127) / 128 * 128));
    }
    const cublasLtMatrixLayout_t a = layout(factor, s.transpose_a ? s.k : s.m, s.transpose_a ? s.m : s.k),
                                 b = layout(factor, s.transpose_b ? s.n : s.k, s.transpose_b ? s.k : s.n),
                                 d = layout(out, s.m, s.n);
    cublasLtMatmulPreference_t preference = nullptr;
    check(cublasLtMatmulPreferenceCreate(&preference));
    check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes_,
                                               sizeof workspace_bytes_));
    const std::uint32_t reductions =
        CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions,
                                               sizeof reductions));
    std::vector<cublasLtMatmulHeuristicResult_t> found(10);
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(lt_, what, a, b, d, d, preference,
                                                                 static_cast<int>(found.size()), found.data(), &count);
    fmt::print("{}: {} x {} by {}\n", s.name, s.m, s.n, s.k);
    if (status != CUBLAS_STATUS_SUCCESS || count == 0) fmt::print("  none ({})\n", cublasLtGetStatusString(status));
    for (std::size_t n = 0; n < static_cast<std::size_t>(count); ++n) print(found[n], what, a, b, d);
    cublasLtMatmulPreferenceDestroy(preference);
    for (const cublasLtMatrixLayout_t each : {a, b, d}) cublasLtMatrixLayoutDestroy(each);
    cublasLtMatmulDescDestroy(what);
  }

 private:
  template <class Value>
  static void set(cublasLtMatmulDesc_t what, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    check(cublasLtMatmulDescSetAttribute(what, attribute, &value, sizeof value));
  }
  static cublasLtMatrixLayout_t layout(cudaDataType_t element, std::size_t rows, std::size_t columns) {
    cublasLtMatrixLayout_t made = nullptr;
    check(cublasLtMatrixLayoutCreate(&made, element, rows, columns, static_cast<std::int64_t>(rows)));
    return made;
  }
  static int configured(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute) {
    std::int32_t value = 0;  // some attributes are of 16 bits, and leave the rest 0
    std::size_t written = 0;
    cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value, &written);
    if (written == 0) {
      std::uint16_t narrow = 0;
      cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &narrow, sizeof narrow, &written);
      value = narrow;
    }
    return value;
  }

  /// A line of one algorithm. What the heuristic offers may yet be refused: that is said, and the others follow.
  void print(const cublasLtMatmulHeuristicResult_t& r, cublasLtMatmulDesc_t what, cublasLtMatrixLayout_t a,
             cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t d) {
    cublasStatus_t status = r.state;
    if (status == CUBLAS_STATUS_SUCCESS) status = run(what, a, b, d, r.algo);
    const std::string took = status != CUBLAS_STATUS_SUCCESS
                                 ? fmt::format("refused ({})", cublasLtGetStatusString(status))
                                 : fmt::format("{:7.2f} us", seconds(what, a, b, d, r.algo) * 1e6);
    fmt::print(
        "  {}  algorithm {:3}, tile {:3}, stages {:3}, split {:2}, reduction {}, inner {}, cluster {:2}, "
        "swizzle {}, option {:3}, workspace {:8}, waves {:.2f}\n",
        took, configured(r.algo, CUBLASLT_ALGO_CONFIG_ID), configured(r.algo, CUBLASLT_ALGO_CONFIG_TILE_ID),
        configured(r.algo, CUBLASLT_ALGO_CONFIG_STAGES_ID), configured(r.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
        configured(r.algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME),
        configured(r.algo, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID),
        configured(r.algo, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID),
        configured(r.algo, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING), configured(r.algo, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION),
        r.workspaceSize, r.wavesCount);
  }

  cublasStatus_t run(cublasLtMatmulDesc_t what, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                     cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t& algorithm) {
    const float one = 1, none = 0;
    return cublasLtMatmul(lt_, what, &one, a_, a, b_, b, &none, d_, d, d_, d, &algorithm, workspace_, workspace_bytes_,
                          nullptr);
  }

  /// Of one product among many in a row: what a launch costs beside it is hidden.
  double seconds(cublasLtMatmulDesc_t what, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                 cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t& algorithm) {
    constexpr int times = 100;
    const auto many = [&] {
      for (int n = 0; n < times; ++n) check(run(what, a, b, d, algorithm));
    };
    many();
    check(cudaEventRecord(first_, nullptr));
    many();
    check(cudaEventRecord(last_, nullptr));
    check(cudaEventSynchronize(last_));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, first_, last_));
    return static_cast<double>(milliseconds) / 1e3 / times;
  }

  train::precision arithmetic_;
  std::size_t workspace_bytes_;
  cublasLtHandle_t lt_ = nullptr;
  void *a_ = nullptr, *b_ = nullptr, *d_ = nullptr, *bias_ = nullptr, *mask_ = nullptr, *workspace_ = nullptr;
  cudaEvent_t first_ = nullptr, last_ = nullptr;
};

}  // namespace

void print_candidates(train::precision arithmetic, std::size_t rows, std::size_t inputs, std::size_t outputs,
                      std::size_t workspace_bytes) {
  bench on(arithmetic, std::max({rows * inputs, rows * outputs, inputs * outputs}), workspace_bytes);
  on.print({"forward, bias", outputs, rows, inputs, true, false, CUBLASLT_EPILOGUE_BIAS, false});
  on.print({"forward, bias and ReLU", outputs, rows, inputs, true, false, CUBLASLT_EPILOGUE_RELU_BIAS, false});
  on.print(
      {"forward, bias, ReLU and its mask", outputs, rows, inputs, true, false, CUBLASLT_EPILOGUE_RELU_AUX_BIAS, false});
  on.print({"gradient of weights", inputs, outputs, rows, false, true, CUBLASLT_EPILOGUE_DEFAULT, true});
  on.print(
      {"gradient of weights, and of the bias", inputs, outputs, rows, false, true, CUBLASLT_EPILOGUE_BGRADB, true});
  on.print({"gradient of inputs", inputs, rows, outputs, false, false, CUBLASLT_EPILOGUE_DEFAULT, false});
  on.print({"gradient of inputs through ReLU", inputs, rows, outputs, false, false, CUBLASLT_EPILOGUE_DRELU, false});
  on.print({"gradient of inputs through ReLU, and of its bias", inputs, rows, outputs, false, false,
            CUBLASLT_EPILOGUE_DRELU_BGRAD, false});
}

}  // namespace penstock::benchmark
