#pragma once

#include <filesystem>
#include <stop_token>

#include "../common/input_files.hpp"

namespace examples {

/// The files in `source` that are read.
input_files fashion_mnist_files(const std::filesystem::path& source);

/// Writes Fashion-MNIST, which lies as four compressed IDX files in `source`, to `target`: /train/images uint8
/// 60000 x 28 x 28, /train/labels uint8 60000, and 10000 of each in /test. False where `stop` was requested before
/// all of it was written: there is no new file then.
bool write_fashion_mnist(const std::filesystem::path& source, const std::filesystem::path& target,
                         const std::stop_token& stop);

}  // namespace examples
