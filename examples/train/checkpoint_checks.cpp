#include "checkpoint_checks.hpp"

#include "training_log.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>

namespace examples {

void check_initial(const train_options& o) {
  std::error_code not_there;
  if (o.epochs != 0 || o.resume || o.checkpoint.empty() || !std::filesystem::exists(o.checkpoint, not_there)) return;
  throw std::invalid_argument(
      fmt::format("--epochs 0 keeps the initial weights, and --checkpoint {} is there: to see what it is worth, add "
                  "--resume; else name another file",
                  o.checkpoint));
}

void check_resumed(const train_options& o, const planned_session& session) {
  if (!o.resume) return;
  penstock::train::check_checkpoint(o.checkpoint, session.trainer);
  training_log(o.log, form_of(session, o), session.testing.has_value(), log_position{}, true);
}

}  // namespace examples
