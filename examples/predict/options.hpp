#pragma once

#include <penstock/gpu/ledger.hpp>
#include <penstock/pipeline/damage.hpp>

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <vector>

namespace examples {

/// What the command line of penstock-predict says.
struct predict_options {
  std::string checkpoint;
  std::vector<std::string> files;
  std::string x = "/x";
  std::string x2;  ///< second inputs; empty: the model has one
  std::string output;
  std::string dataset = "/prediction";
  penstock::pipeline::damage_options damaged{};
  bool classes = false;  ///< in place of the values
  bool skip_non_finite = false;
  std::size_t batch_rows = 1024;
  std::string precision = "float32";
  std::string device = "auto";
  penstock::gpu::budget budget;
  std::size_t threads = 0;
  bool plan_only = false;
};

/// Adds the options to the command line that is parsed into `o`.
void add_predict_options(CLI::App& app, predict_options& o);

}  // namespace examples
