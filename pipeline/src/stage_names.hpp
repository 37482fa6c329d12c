#pragma once

#include "wiring.hpp"

#include <string>
#include <vector>

namespace penstock::pipeline {

/// What a report calls the transforms of a pipeline: by their own names, unless Penstock has a stage of that name (a
/// transform "decode" is "decode (transform)") or another transform has it ("crop", "crop 2"), so that nothing is
/// charged to a namesake.
struct stage_names {
  explicit stage_names(const wiring& fields);

  std::vector<std::string> host, device;  ///< in the order of the transforms
};

}  // namespace penstock::pipeline
