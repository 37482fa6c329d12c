#include "products.hpp"

#include "algorithm_choice.hpp"
#include "check.hpp"
#include "lt_handles.hpp"

#include <penstock/gpu/error.hpp>

#include <cublasLt.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::train::cuda {
namespace {

template <class S>
inline constexpr cudaDataType_t data_type = std::is_same_v<S, double>     ? CUDA_R_64F
                                            : std::is_same_v<S, bfloat16> ? CUDA_R_16BF
                                            : std::is_same_v<S, float16>  ? CUDA_R_16F
                                                                          : CUDA_R_32F;
template <class S>
cublasComputeType_t compute_type(precision arithmetic) {
  if (std::is_same_v<S, double>) return CUBLAS_COMPUTE_64F;
  return arithmetic == precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

/// The bytes that a pointer is a multiple of, at most what cuBLASLt asks for.
std::uint32_t alignment_of(const void* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  return static_cast<std::uint32_t>(std::min<std::uintptr_t>(address & (~address + 1), 256));
}

/// A product with the alignment of what it works on, which algorithms depend on.
struct placed_product {
  product what;
  std::uint32_t a = 256, b = 256, c = 256;

  friend auto operator<=>(const placed_product&, const placed_product&) = default;
};

static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof(chosen_algorithm::algorithm));

chosen_algorithm named(const placed_product& p, const cublasLtMatmulAlgo_t& algorithm) {
  const product& w = p.what;
  const auto flag = [](bool set, unsigned place) { return std::uint64_t{set} << place; };
  chosen_algorithm name{.product = {w.rows, w.columns, w.depth,
                                    flag(w.transpose_a, 0) | flag(w.transpose_b, 1) | flag(w.accumulate, 2) |
                                        flag(w.bias, 3) | flag(w.gradient, 4) | flag(w.sums, 5),
                                    static_cast<std::uint64_t>(w.activation), p.a, p.b, p.c}};
  std::memcpy(name.algorithm.data(), &algorithm, sizeof algorithm);
  return name;
}

/// The product that a name is of; nothing for what named() does not give.
std::optional<placed_product> product_of(const chosen_algorithm& name) {
  const auto& n = name.product;
  const auto flag = [&](unsigned place) { return (n[3] >> place & 1) != 0; };
  const placed_product p{.what = {.rows = n[0],
                                  .columns = n[1],
                                  .depth = n[2],
                                  .transpose_a = flag(0),
                                  .transpose_b = flag(1),
                                  .accumulate = flag(2),
                                  .bias = flag(3),
                                  .gradient = flag(4),
                                  .sums = flag(5),
                                  .activation = static_cast<activation>(n[4])},
                         .a = static_cast<std::uint32_t>(n[5]),
                         .b = static_cast<std::uint32_t>(n[6]),
                         .c = static_cast<std::uint32_t>(n[7])};
  if (named(p, {}).product != n) return std::nullopt;
  return p;
}

/// Stands for a bias whose place is not known yet. It is neither read nor written.
alignas(256) constexpr std::byte any_bias{};

struct prepared {
  lt_description description;
  lt_layout left, right, out;                    // cuBLASLt's A, B and C = D, all by columns
  std::vector<cublasLtMatmulAlgo_t> algorithms;  // what is left to be tried, the first one in use
};

lt_layout make_layout(cudaDataType_t element, std::size_t rows, std::size_t columns, std::size_t leading) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(cublasLtMatrixLayoutCreate(&layout, element, rows, columns, static_cast<std::int64_t>(leading)),
        "describing a matrix");
  return lt_layout(layout);
}

template <class Value>
void set(const lt_description& description, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  check(cublasLtMatmulDescSetAttribute(description.native(), attribute, &value, sizeof value), "describing a product");
}

cublasLtEpilogue_t epilogue_of(const product& p) {
  if (p.sums) return CUBLASLT_EPILOGUE_BGRADB;  // cuBLASLt's B is our a
  if (!p.bias) return CUBLASLT_EPILOGUE_DEFAULT;
  return p.activation == activation::relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
}

}  // namespace

std::string products_of(gpu::device d) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, d.ordinal()), "asking for a device's name");
  return fmt::format("{}, cuBLASLt {}", properties.name, cublasLtGetVersion());
}

void require_tensor_cores(gpu::device d, precision arithmetic) {
  int major = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, d.ordinal()),
        "asking for a device's compute capability");
  require_tensor_cores(d.name(), major, arithmetic);
}

void require_tensor_cores(std::string_view card, int major, precision arithmetic) {
  const int needed = arithmetic == precision::float32 ? 0 : arithmetic == precision::fp16 ? 7 : 8;
  if (major >= needed) return;
  throw gpu::error(fmt::format("{} has no {} arithmetic (it needs compute capability {}.0); compute in float32", card,
                               name_of(arithmetic), needed));
}

template <class S>
struct products<S>::impl {
  using T = arithmetic<S>;

  lt_handle lt;
  std::span<std::byte> workspace;
  precision rounding;
  std::map<placed_product, prepared> known;

  impl(std::span<std::byte> space, precision p) : workspace(space), rounding(p) {
    cublasLtHandle_t native = nullptr;
    check(cublasLtCreate(&native), "starting cuBLASLt");
    lt.reset(native);
  }

  /// Row-major c = a b is column-major c^T = b^T a^T: the factors change places, and a row-major matrix is the
  /// transpose of a column-major one with the same bytes.
  prepared describe(const product& p, const void* bias) const {
    prepared made;
    cublasLtMatmulDesc_t description = nullptr;
    check(cublasLtMatmulDescCreate(&description, compute_type<S>(rounding), data_type<T>), "describing a product");
    made.description.reset(description);
    set(made.description, CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(made.description, CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(made.description, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(p));
    if (p.sums) set(made.description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    made.left = p.transpose_b ? make_layout(data_type<S>, p.depth, p.columns, p.depth)
                              : make_layout(data_type<S>, p.columns, p.depth, p.columns);
    made.right = p.transpose_a ? make_layout(data_type<S>, p.rows, p.depth, p.rows)
                               : make_layout(data_type<S>, p.depth, p.rows, p.depth);
    made.out = make_layout(p.gradient ? data_type<T> : data_type<S>, p.columns, p.rows, p.columns);
    return made;
  }

  prepared prepare(const placed_product& placed, const void* bias) const {
    prepared made = describe(placed.what, bias);
    made.algorithms = offered(made, placed);
    return made;
  }

  /// Takes an algorithm of a checkpoint, or counts it among those that are left.
  void take(const chosen_algorithm& wanted, left_algorithms& left) {
    const std::optional<placed_product> placed = product_of(wanted);
    if (!placed) return void(++left.refused);
    prepared made = describe(placed->what, &any_bias);
    if (placed->what.bias)
      set(made.description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(&any_bias));
    cublasLtMatmulAlgo_t algorithm{};
    std::memcpy(&algorithm, wanted.algorithm.data(), sizeof algorithm);
    cublasLtMatmulHeuristicResult_t found{};
    if (cublasLtMatmulAlgoCheck(lt.native(), made.description.native(), made.left.native(), made.right.native(),
                                made.out.native(), made.out.native(), &algorithm, &found) != CUBLAS_STATUS_SUCCESS)
      return void(++left.refused);
    if (found.workspaceSize > workspace.size()) {
      ++left.too_large;
      left.needed_bytes = std::max(left.needed_bytes, found.workspaceSize);
      return;
    }
    made.algorithms = {algorithm};
    known.insert_or_assign(*placed, std::move(made));
  }

  std::vector<cublasLtMatmulAlgo_t> offered(const prepared& made, const placed_product& placed) const {
    // cuBLASLt's A is our b, and a bias is read as its D is written.
    return algorithms_for({.lt = lt.native(),
                           .description = made.description.native(),
                           .a = made.left.native(),
                           .b = made.right.native(),
                           .out = made.out.native(),
                           .align_a = placed.b,
                           .align_b = placed.a,
                           .align_out = placed.c,
                           .workspace_bytes = workspace.size(),
                           .most_parts_bytes = most_parts_bytes(placed.what)});
  }

  /// A gradient of weights is made beside other products, which gain from it where it leaves them room: its depth is
  /// split only where the parts are no more to write than the factors are to read.
  static std::size_t most_parts_bytes(const product& p) {
    return p.gradient ? (p.rows + p.columns) * p.depth * sizeof(S) : std::numeric_limits<std::size_t>::max();
  }

  prepared& find(const product& what, const void* a, const void* b, const void* c, const void* bias) {
    const std::uint32_t out = what.bias || what.sums ? std::min(alignment_of(c), alignment_of(bias)) : alignment_of(c);
    const placed_product p{.what = what, .a = alignment_of(a), .b = alignment_of(b), .c = out};
    if (const auto there = known.find(p); there != known.end()) return there->second;
    return known.emplace(p, prepare(p, bias)).first->second;
  }
};

template <class S>
products<S>::products(std::span<std::byte> workspace, precision arithmetic)
    : impl_(std::make_unique<impl>(workspace, arithmetic)) {}
template <class S>
products<S>::products(products&&) noexcept = default;
template <class S>
products<S>::~products() = default;

template <class S>
void products<S>::multiply(cudaStream_t stream, const product& what, const S* a, const S* b, void* c,
                           const void* bias) {
  using T = arithmetic<S>;
  impl& self = *impl_;
  prepared& p = self.find(what, a, b, c, bias);
  const auto refuse = [&](cublasStatus_t status) {
    throw gpu::error(
        fmt::format("cuBLASLt runs no algorithm for a product of {} x {} by depth {} with {} bytes of "
                    "workspace ({}); more workspace may help",
                    what.rows, what.columns, what.depth, self.workspace.size(), cublasLtGetStatusString(status)));
  };
  if (p.algorithms.empty()) refuse(CUBLAS_STATUS_NOT_SUPPORTED);
  if (what.bias || what.sums) set(p.description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  const T one = 1, kept = what.accumulate ? T(1) : T(0);
  for (;;) {
    const cublasStatus_t status = cublasLtMatmul(
        self.lt.native(), p.description.native(), &one, b, p.left.native(), a, p.right.native(), &kept, c,
        p.out.native(), c, p.out.native(), &p.algorithms.front(), self.workspace.data(), self.workspace.size(), stream);
    // Refused, nothing was launched: the next one is tried, now and from now on.
    if (status != CUBLAS_STATUS_NOT_SUPPORTED && status != CUBLAS_STATUS_INVALID_VALUE)
      return check(status, "a matrix product");
    if (p.algorithms.size() == 1) refuse(status);
    p.algorithms.erase(p.algorithms.begin());
  }
}

template <class S>
bool products<S>::offers(const product& what, const S* a, const S* b, void* c, const void* bias) {
  return !impl_->find(what, a, b, c, bias).algorithms.empty();
}

template <class S>
std::vector<chosen_algorithm> products<S>::chosen() const {
  std::vector<chosen_algorithm> all;
  for (const auto& [placed, made] : impl_->known)
    if (!made.algorithms.empty()) all.push_back(named(placed, made.algorithms.front()));
  return all;
}

template <class S>
left_algorithms products<S>::choose(const std::vector<chosen_algorithm>& chosen) {
  impl_->known.clear();
  left_algorithms left{.all = chosen.size()};
  for (const chosen_algorithm& each : chosen) impl_->take(each, left);
  return left;
}

template class products<float>;
template class products<double>;
template class products<bfloat16>;
template class products<float16>;

}  // namespace penstock::train::cuda
