#pragma once

#include <penstock/gpu/device.hpp>
#include <penstock/gpu/ledger.hpp>
#include <penstock/pipeline/description.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace penstock::pipeline {

struct calibration_options {
  double seconds = 0.8;  ///< that it takes, beside opening the source; a slow read may hold it up for longer
};

/// Sizes that were tried, how fast rows came with them, and what to stream with: `description | calibration` does, and
/// plan and report then say what was measured.
struct calibration {
  struct tried {
    std::size_t block_bytes = 0;  ///< stored
    std::size_t slots = 0;
    std::size_t slots_bytes = 0;
    double bytes_per_second = 0;  ///< stored
  };
  transport_options transport{};  ///< the description's own, and in it what was measured of what it left open
  std::vector<tried> blocks{};    ///< of several sizes, from small to large; empty: none was chosen by measuring
  std::vector<tried> slots{};     ///< the same for their number, with the block that was chosen
  std::string block_reason{};     ///< for people: what was measured, or why nothing was
  std::string slots_reason{};
};

/// Chooses block and slots by trying: streams the described rows in blocks of several sizes, each for some tens of
/// milliseconds, on `d` within what `taken` leaves of `limits`, and takes the smallest of those that are within 3 % of
/// the fastest; then the same with other numbers of slots. Batches are given back at once: a consumer's work does not
/// count. What the description fixes stays so, and what does not fit is not tried. Where there is nothing to choose
/// from, or reading is too slow to tell sizes apart in that time, the description's own stay, and the reasons say so.
///
/// Which rows come, and their order, is not concerned. Transforms are called as in a run, and what was read may lie in
/// the page cache afterwards; readers are as many as the plan begins with. All that it allocates is free again when it
/// returns. Throws as description::build() does, what ends a run, and std::invalid_argument for a time that is none.
calibration calibrate(const description& what, gpu::device d, const gpu::budget& limits, const gpu::ledger& taken = {},
                      const calibration_options& how = {});

/// Two lines for people.
std::string to_text(const calibration& c);

}  // namespace penstock::pipeline
