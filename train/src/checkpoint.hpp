#pragma once

#include <penstock/train/trainer.hpp>

#include <filesystem>

namespace penstock::train {

/// The file's datasets are the stage's state items and /normalisation/mean and /deviation; the attribute "penstock" of
/// the root is JSON with everything else. See trainer::save and trainer::resume.
void save_checkpoint(const std::filesystem::path& file, stage& from, const trainer_options& options, const position& at,
                     fault_seam faults);
position load_checkpoint(const std::filesystem::path& file, stage& to, const trainer_options& options);

}  // namespace penstock::train
