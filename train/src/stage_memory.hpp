#pragma once

#include "backend.hpp"
#include "network.hpp"
#include "piece_ring.hpp"

#include <penstock/gpu/memory.hpp>

namespace penstock::train {

/// Names of the stage's own items, beside the network's.
namespace stage_items {
inline constexpr const char* first_moment = "train: first moments";
inline constexpr const char* second_moment = "train: second moments";
inline constexpr const char* moment_ring = "train: ring of moments";
inline constexpr const char* input = "train: normalised input";
inline constexpr const char* mean = "train: means of inputs";
inline constexpr const char* scale = "train: scales of inputs";
inline constexpr const char* moments = "train: statistics of inputs";
inline constexpr const char* scores = "train: scores of rows";
inline constexpr const char* class_weights = "train: weights of classes";
inline constexpr const char* confusion = "train: confusion matrix";
inline constexpr const char* column_sums = "train: sums of columns";
inline constexpr const char* norm_sums = "train: sums for the gradient's norm";
inline constexpr const char* workspace = "train: workspace of matrix products";
inline constexpr const char* state = "train: step state";
inline constexpr const char* progress = "train: landing place of the step state";
inline constexpr const char* staging = "train: staging of weights";
inline constexpr const char* blas = "train: OpenBLAS's packing buffers";
}  // namespace stage_items

/// Throws std::invalid_argument for options that contradict themselves.
void check(const stage_options& options);
/// The same, and for what the device lacks: std::invalid_argument of the host, gpu::error of a CUDA device.
void check(gpu::device d, const stage_options& options);

/// Throws gpu::error where a CUDA device has no such arithmetic of matrix products.
void check_arithmetic(gpu::device d, precision arithmetic);

/// What OpenBLAS keeps on the host for the threads that compute where so many are asked for.
void add_blas_buffers(std::size_t threads, gpu::ledger& ledger);

/// The norm of the gradient is taken at each step: for clipping, or to see an overflow.
bool needs_norm(const stage_options& options) noexcept;

/// How offloaded moments pass through their ring.
piece_ring moment_pieces(const stage_options& options, std::size_t parameters);

/// The workspaces that the plan holds; empty where the device needs none.
backend_memory workspaces(const gpu::memory& memory);

}  // namespace penstock::train
