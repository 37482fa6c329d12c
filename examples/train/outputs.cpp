#include "outputs.hpp"

#include "../common/existing_file.hpp"
#include "../common/gnuplot.hpp"
#include "../common/program.hpp"
#include "training_log.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace examples {
namespace {

/// A checkpoint is written beside the old one, and then put in its place: nothing but a file can be replaced so.
void check_replaceable(const named_file& named) {
  const auto& [option, file] = named;
  std::error_code not_there;
  if (!file.empty() && std::filesystem::exists(file, not_there) && !std::filesystem::is_regular_file(file, not_there))
    throw std::invalid_argument(
        fmt::format("{} {}: it is no file that a checkpoint could replace; name another", option, file));
}

/// A run that begins anew would replace what another one has come to.
void check_fresh(const train_options& o, const named_file& named) {
  const auto& [option, file] = named;
  std::error_code not_there;
  if (o.resume || file.empty() || !std::filesystem::is_regular_file(file, not_there)) return;
  throw std::invalid_argument(fmt::format(
      "{} {}: the file is there, and a run that begins anew would replace it; {}name another, or remove it", option,
      file,
      o.checkpoint.empty() ? "" : "go on with that run with --resume (with --epochs 0 to see what it is worth), "));
}

}  // namespace

void check_outputs(const train_options& o, const input_files& inputs) {
  const std::vector<named_file> files{{"--checkpoint", o.checkpoint},
                                      {o.keep_best ? "--keep-best" : "--best-checkpoint", o.best_checkpoint},
                                      {"--json", o.json},
                                      {"--log", o.log},
                                      {"--plot", o.plot},
                                      {"--trace", o.trace}};
  training_log::check_name(o.log);
  for (std::size_t n = 0; n < files.size(); ++n)
    check_output(files[n].option, files[n].file, inputs, n < 2 ? output::hdf5 : output::other);
  check_replaceable(files[0]);
  check_replaceable(files[1]);
  check_apart(files);
  check_plot("--plot", o.plot, inputs);
  check_fresh(o, files[0]);
  check_fresh(o, files[1]);
  if (!training_log::is_of_no_epoch(o.log)) check_fresh(o, files[3]);
  if (o.resume && !o.best_checkpoint.empty())  // which was perhaps named for the first time
    check_own(files[1].option, o.best_checkpoint, "penstock", "is no checkpoint");
}

}  // namespace examples
