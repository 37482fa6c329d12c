// Runs and pools that nobody asked for.

#include <penstock/pipeline/order_options.hpp>

#include <algorithm>
#include <cmath>

namespace penstock::pipeline {
namespace {

// Defaults keep what storage keeps together, within a size that still mixes.
constexpr std::uint64_t least_run_bytes = 256 << 10;
constexpr std::uint64_t most_run_bytes = 4 << 20;
constexpr std::uint64_t runs_in_a_pool = 32;
constexpr std::uint64_t most_pool_bytes = 128 << 20;
constexpr double most_decoded_again = 1.25;
// A pool that was asked for holds so many runs, where these are chunks that are decoded whole.
constexpr std::uint64_t least_runs_in_a_pool = 4;
// That a shard gets, that a source of a mix has, and that a pool holds of it: fewer would be much the same in every
// epoch, come again to fill up the last, or leave batches without a row of it.
constexpr std::uint64_t least_runs_of_each = 8;
// What is a smaller part of a mix would cut runs down to rows.
constexpr double least_share = 1.0 / 64;

/// How often a chunk is decoded where runs of `run` rows come in any order.
double times_decoded(std::uint64_t chunk, std::uint64_t run) {
  if (run % chunk == 0) return 1;
  const double parts = static_cast<double>(chunk) / static_cast<double>(run);
  return chunk % run == 0 ? parts : parts + 1;  // runs that do not end where chunks do reach into one more
}

double decoded_bytes(const source_shape& shape, std::uint64_t run) {
  double bytes = 0;
  for (const decoded_field& field : shape.decoded)
    bytes += static_cast<double>(field.row_bytes) * times_decoded(std::min(field.chunk_rows, shape.rows), run);
  return bytes;
}

/// Another run in place of `run`, where that decodes much more than there is: one that ends where chunks end, or one as
/// long as they are, the shortest that will do.
std::uint64_t fitted_to_chunks(std::uint64_t run, const source_shape& shape, std::uint64_t most_rows) {
  std::vector<std::uint64_t> heights, runs{run};
  double once = 0;
  for (const decoded_field& field : shape.decoded) {
    heights.push_back(std::min(field.chunk_rows, shape.rows));
    once += static_cast<double>(field.row_bytes);
  }
  std::sort(heights.begin(), heights.end());
  for (const std::uint64_t height : heights) {
    const std::uint64_t parts = (height + most_rows - 1) / most_rows;
    runs.push_back(height <= run ? run / height * height : (height + parts - 1) / parts);
  }
  for (const std::uint64_t wanted : runs)
    if (decoded_bytes(shape, wanted) <= once * most_decoded_again) return wanted;
  return *std::min_element(runs.begin(), runs.end(), [&](std::uint64_t x, std::uint64_t y) {
    return decoded_bytes(shape, x) < decoded_bytes(shape, y);
  });
}

/// Computes what a wish leaves open.
class chooser {
 public:
  chooser(const source_shape& shape, std::uint64_t shards)
      : shape_(shape),
        rows_(std::max<std::uint64_t>(shape.rows, 1)),
        shards_(std::max<std::uint64_t>(shards, 1)),
        of_a_shard_((rows_of_epoch() + shards_ - 1) / shards_) {}

  shuffled operator()(shuffled wish) const {
    const std::uint64_t plain = kept_together();
    std::uint64_t run = fitted(plain, rows_of(most_pool_bytes));
    std::uint64_t pool = wish.pool_rows;
    if (pool)
      run = fitted(std::min(plain, part_of(pool, runs_in_a_pool)),
                   std::min(rows_of(most_pool_bytes), part_of(pool, least_runs_in_a_pool)));
    else
      pool = std::max(pool_for(run, plain), wish.run_rows ? pool_for(wish.run_rows, 0) : 0);
    if (const std::uint64_t most = longest_run(pool); run > most) run = fitted(most, most);
    return {.seed = wish.seed, .run_rows = wish.run_rows ? wish.run_rows : run, .pool_rows = pool};
  }

 private:
  static std::uint64_t part_of(std::uint64_t rows, std::uint64_t parts) {
    return std::max<std::uint64_t>(rows / parts, 1);
  }
  std::uint64_t rows_of(std::uint64_t bytes) const {
    return part_of(bytes, std::max<std::uint64_t>(shape_.row_bytes, 1));
  }
  std::uint64_t rows_of_epoch() const {
    return shape_.mixed.empty() ? rows_ : std::max<std::uint64_t>(shape_.mixed_rows, 1);
  }
  std::uint64_t fitted(std::uint64_t run, std::uint64_t most_rows) const {
    return shape_.rows > 0 ? fitted_to_chunks(run, shape_, most_rows) : run;
  }
  double smallest_share() const {
    double least = 1;
    for (const mixed_part& part : shape_.mixed) least = std::min(least, part.share);
    return std::max(least, least_share);
  }

  /// Whole chunks, within what is read well and still mixes.
  std::uint64_t kept_together() const {
    std::uint64_t chunk = std::max<std::uint64_t>(shape_.chunk_rows, 1);
    for (const decoded_field& field : shape_.decoded) chunk = std::max(chunk, field.chunk_rows);
    std::uint64_t run = chunk;
    const std::uint64_t least = rows_of(least_run_bytes);
    if (run < least) run = chunk * ((least + chunk - 1) / chunk);
    return std::min({run, rows_of(most_run_bytes), rows_});
  }

  /// `plain`: a run of this length would do with one in the pool; of a longer one, two are held at least, or rows would
  /// be drawn from one chunk alone.
  std::uint64_t pool_for(std::uint64_t run, std::uint64_t plain) const {
    std::uint64_t runs = runs_in_a_pool;
    // Runs that are cut decode their chunks again: of whole ones, a larger pool holds enough of each source.
    if (!shape_.mixed.empty() && !shape_.decoded.empty())
      runs = std::max(runs, static_cast<std::uint64_t>(std::ceil(least_runs_of_each / smallest_share())));
    const std::uint64_t least = run > plain ? 2 * std::min(run, rows_of_epoch()) : run;
    const std::uint64_t most = std::max(rows_of(most_pool_bytes), least);
    return std::min({run > most / runs ? most : run * runs, of_a_shard_});
  }

  /// What shards and the sources of a mix allow.
  std::uint64_t longest_run(std::uint64_t pool) const {
    std::uint64_t most = ~std::uint64_t{0};
    if (shards_ > 1) most = part_of(of_a_shard_, least_runs_of_each);
    if (shape_.mixed.empty()) return most;
    most = std::min(most, part_of(of_a_shard_, least_runs_of_each * shape_.mixed.size()));
    for (const mixed_part& part : shape_.mixed) most = std::min(most, part_of(part.rows, least_runs_of_each));
    const double of_rarest = static_cast<double>(std::min(pool, of_a_shard_)) * smallest_share();
    return std::min(most, part_of(static_cast<std::uint64_t>(of_rarest), least_runs_of_each));
  }

  const source_shape& shape_;
  std::uint64_t rows_;
  std::uint64_t shards_;
  std::uint64_t of_a_shard_;
};

}  // namespace

shuffled order_defaults(const source_shape& shape, const shuffled& wish, std::uint64_t shards) {
  return chooser(shape, shards)(wish);
}

}  // namespace penstock::pipeline
