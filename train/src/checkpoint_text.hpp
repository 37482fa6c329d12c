#pragma once

#include "learner.hpp"

#include <penstock/train/trainer.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace penstock::train {

// What a checkpoint says beside its arrays, as JSON. Reading throws nlohmann::json::exception for what is not there or
// of another type, and std::invalid_argument for names that are not known.

/// A count. What JSON converts by itself is any number, and one that does not fit is undefined: whoever forges a
/// checkpoint can give its counts fractions and exponents.
std::uint64_t count_of(const nlohmann::json& j);

nlohmann::json to_json(const metrics& m);
metrics metrics_of(const nlohmann::json& j);
nlohmann::json to_json(const judged_epochs& j);
judged_epochs judged_of(const nlohmann::json& j);

/// What the stage's model can be made of again, with its type of arithmetic and its loss.
nlohmann::json description_of(const stage_options& s);
mlp_options model_of(const nlohmann::json& there);

/// What must be the same for a run to go on as if it had never stopped, each with its words for people; class names
/// and weights are in arrays (checkpoint_classes.hpp). `own_model`: its name; empty: it is the stage.
nlohmann::json identity_of(const std::string& own_model, const trainer_options& options);

/// Of arithmetic_of(): the figure that counts nothing between two epochs.
inline constexpr const char* top_k_under_way = "top-k of the epoch under way";
/// What may differ when a run goes on, but changes its bits: texts, each with its words for people.
nlohmann::json arithmetic_of(const learner& model, const trainer_options& options);

}  // namespace penstock::train
