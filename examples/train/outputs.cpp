#include "outputs.hpp"

#include "../common/gnuplot.hpp"
#include "../common/program.hpp"
#include "training_log.hpp"

namespace examples {

void check_outputs(const train_options& o, const std::vector<std::filesystem::path>& inputs) {
  const std::vector<named_file> files{{"--checkpoint", o.checkpoint},
                                      {o.keep_best ? "--keep-best" : "--best-checkpoint", o.best_checkpoint},
                                      {"--json", o.json},
                                      {"--log", o.log},
                                      {"--plot", o.plot}};
  training_log::check_name(o.log);
  for (const auto& [option, file] : files) check_output(option, file, inputs);
  check_apart(files);
  check_plot("--plot", o.plot, inputs);
}

}  // namespace examples
