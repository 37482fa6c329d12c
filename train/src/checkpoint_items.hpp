#pragma once

#include "checkpoint.hpp"
#include "learner.hpp"

#include <penstock/io/writer.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace penstock::train {

// The arrays of a checkpoint, each with a checksum.

/// Throws train::error that names the file.
[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& sentence);

std::string checksum_of(std::span<const std::byte> bytes);
/// Refuses `what` unless its checksum is the one that was written.
void check_sum(const std::filesystem::path& file, const std::string& what, const std::string& found,
               const std::string& written);

/// Writes an array of one axis and more than no values, and adds its checksum to `sums` by its path.
void write_array(io::writer& to, const std::string& path, type element, std::span<const std::byte> values,
                 nlohmann::json& sums);
/// Reads all values of such an array, of which there are as many as `values` has room for.
void read_array(const std::filesystem::path& file, const std::string& path, type element, std::span<std::byte> values,
                const nlohmann::json& sums);

/// Writes the model's state, the gradients of a step that has begun where there is one, and the statistics of the
/// inputs. Gives the checksum of each array by its path.
nlohmann::json write_items(io::writer& to, learner& from, bool with_gradients);

/// Gives the items to `write` piece by piece, and returns the statistics of `inputs` inputs. Everything is compared,
/// and its checksum in `there` is right, before anything is written: so it is opened and read twice, and the checksum
/// of what was written is compared, too. A file that another takes the place of meanwhile is noticed then, and is to be
/// read again: see read_whole().
input_statistics read_items(const std::filesystem::path& file, const nlohmann::json& there,
                            const std::vector<state_item>& items, std::size_t inputs, const item_writer& write);

}  // namespace penstock::train
