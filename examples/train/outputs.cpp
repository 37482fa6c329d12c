#include "outputs.hpp"

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

}  // namespace

void check_outputs(const train_options& o, const input_files& inputs) {
  const std::vector<named_file> files{{"--checkpoint", o.checkpoint},
                                      {o.keep_best ? "--keep-best" : "--best-checkpoint", o.best_checkpoint},
                                      {"--json", o.json},
                                      {"--log", o.log},
                                      {"--plot", o.plot},
                                      {"--trace", o.trace}};
  training_log::check_name(o.log);
  for (const auto& [option, file] : files) check_output(option, file, inputs);
  check_replaceable(files[0]);
  check_replaceable(files[1]);
  check_apart(files);
  check_plot("--plot", o.plot, inputs);
}

}  // namespace examples
