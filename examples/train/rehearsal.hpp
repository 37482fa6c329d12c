#pragma once

#include <penstock/gpu/device.hpp>
#include <penstock/train/trainer.hpp>

#include <cstddef>

namespace examples {

/// Bytes of the device's memory that the first steps of a run take beside its plan: kernels that are loaded and steps
/// that are recorded. An estimate: measured with a small model of the same layers, loss, optimizer and precision on
/// rows of zeros; a run's own shapes may want other kernels, and its pipeline has some, too. What other processes take
/// or give back meanwhile counts. Waits for the device; throws what a stage throws.
std::size_t rehearsed_bytes(penstock::gpu::device device, const penstock::train::trainer_options& options);

}  // namespace examples
