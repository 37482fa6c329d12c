#include "options.hpp"

#include "../common/damaged.hpp"
#include "../common/program.hpp"

namespace examples {

void add_predict_options(CLI::App& app, predict_options& o) {
  app.add_option("CHECKPOINT", o.checkpoint, "What penstock-train --checkpoint wrote")->required();
  app.add_option("FILE", o.files, "HDF5 files, or patterns of files; their rows are joined in this order")->required();
  app.add_option("--x", o.x, "Dataset of the inputs")->capture_default_str();
  app.add_option("--x2", o.x2, "Dataset of the second inputs, for a model that compares");
  app.add_option("-o,--output", o.output,
                 "HDF5 file for the predictions, row by row; replaces earlier predictions, and no other file")
      ->required();
  app.add_option("--dataset", o.dataset, "Its dataset")->capture_default_str();
  app.add_flag(
      "--classes", o.classes,
      "Write classes (int32), not probabilities: of each row the most probable one, or 1 and 0 for yes and no, for "
      "each value where a model has several; see --skip-non-finite for rows that have none: an output is no number, or "
      "the largest of several classes is infinite");
  add_damaged_option(app, o.damaged, "their predictions are NaN, or class -1, and they are listed");
  app.add_flag(
      "--skip-non-finite", o.skip_non_finite,
      "Leave out rows with inputs that are NaN or infinite, and rows with outputs that are (as of values beyond "
      "65504 in fp16), instead of failing: their predictions are NaN, or class -1, and they are listed");
  app.add_option("--batch-rows,--batch-size", o.batch_rows, "Rows that go through the model at once")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 30))
      ->capture_default_str();
  app.add_option("--precision", o.precision, "Of matrix products: float32, tf32, bf16, or fp16, which ends at 65504")
      ->capture_default_str();
  app.add_option("--device", o.device, "host (cpu), cuda:N, cuda, or auto: the best there is")->capture_default_str();
  add_bytes_option(app, "--device-memory", o.budget.device_bytes, "Budget of device memory");
  add_bytes_option(app, "--pinned-memory", o.budget.pinned_bytes, "Budget of pinned host memory");
  add_bytes_option(app, "--host-memory", o.budget.host_bytes, "Budget of other host memory: indexes, scratch");
  app.add_option("--threads", o.threads,
                 "Threads that read, and on the host compute; 0: as many as processors, and 64 at most that compute")
      ->capture_default_str();
  app.add_flag("--plan", o.plan_only, "Show the memory plan, and end");
}

}  // namespace examples
