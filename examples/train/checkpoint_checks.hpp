#pragma once

#include "options.hpp"
#include "session.hpp"

namespace examples {

/// Refuses to put initial weights (--epochs 0) in the place of a checkpoint that is there. Throws
/// std::invalid_argument.
void check_initial(const train_options& o);

/// With --plan --resume, refuses what the run itself would of checkpoint and log, but for other data and damaged
/// arrays: these show where there is memory for a run. Throws io::error, train::error, std::runtime_error.
void check_resumed(const train_options& o, const planned_session& session);

}  // namespace examples
