#pragma once

#include <penstock/pipeline/source.hpp>

#include <cstdint>
#include <vector>

namespace penstock::pipeline {

/// One of several sources that are mixed.
struct source_share {
  source from;
  double ratio = 1;  ///< of all ratios together: its part of the rows
};

struct mix_options {
  std::uint64_t rows = 0;  ///< of an epoch; 0: as many as all sources have together
};

/// What a mixed source is made of.
struct mixture {
  std::vector<source_share> parts;
  mix_options how;
};

/// One source out of several: its fields are theirs joined, and rows come from each by its ratio, whatever its size:
/// rows of a source that is too small for its part come several times, and of one that is too large not all come in an
/// epoch (the next one goes on where it ended). What comes in turn is a row (sequential, random) or a run (shuffled:
/// the pool mixes them, at the price of any shuffled order). Runs that nobody asked for are so short that a pool holds
/// eight of each source (order_defaults); longer ones leave batches of one source alone (order_price says how many),
/// and are refused where an epoch would have fewer runs than there are sources. Where an epoch is no whole number of
/// runs, the short one is a source's by ratio, too: over the epochs the ratios hold. Within a source rows come as in
/// the order, pass by pass: in a pass every row once, but for what an epoch's end cut off, and a few again where the
/// last run is short, which is filled up.
///
/// Row numbers count on from one source to the next; pipeline::place_of() says where a row is stored. Throws
/// std::invalid_argument for no sources, for ratios that are not above 0, for sources that are mixed themselves or
/// whose fields differ in name or options. Types and shapes are compared when the source is opened.
source mixed(std::vector<source_share> parts, mix_options how = {});

}  // namespace penstock::pipeline
