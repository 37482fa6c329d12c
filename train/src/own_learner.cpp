#include "own_learner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <stdexcept>
#include <string_view>

namespace penstock::train {
namespace {

using gpu::memory_kind;

constexpr const char* sums_name = "train: metrics";
constexpr const char* landing_name = "train: landing place of the metrics";
constexpr const char* staging_name = "train: staging of the model's state";
constexpr std::size_t staging_bytes = std::size_t{256} << 10;

std::size_t bytes_of(const state_item& item) {
  std::size_t bytes = size_of(item.element);
  for (const std::uint64_t extent : item.shape) bytes *= extent;
  return bytes;
}

void check(const state_item& item, const char* what, std::string_view group) {
  if (!item.path.starts_with(group) || item.data == nullptr || item.shape.empty() || bytes_of(item) == 0)
    throw std::invalid_argument(
        fmt::format("a model shows {} under '{}'; it needs a path that begins with {}, memory, and extents above 0",
                    what, item.path, group));
}

/// Whether HDF5 can name a dataset so: names between slashes, none empty, and '.' names nothing new there.
bool names_a_dataset(std::string_view path) {
  for (std::size_t first = 1; first <= path.size();) {
    const std::size_t end = std::min(path.find('/', first), path.size());
    const std::string_view name = path.substr(first, end - first);
    if (name.empty() || name == "." || name.find('\0') != name.npos) return false;
    first = end + 1;
  }
  return true;
}

/// In a checkpoint each item is a dataset: no two have one path, and none lies below another.
void check_paths(const std::vector<state_item>& items, const char* what) {
  std::set<std::string_view> paths;
  for (const state_item& item : items) {
    if (!names_a_dataset(item.path))
      throw std::invalid_argument(
          fmt::format("a model shows {} under '{}'; names between slashes are not empty, nor '.'", what, item.path));
    if (!paths.insert(item.path).second)
      throw std::invalid_argument(
          fmt::format("a model shows {} under '{}' twice; each item needs a path of its own", what, item.path));
  }
  for (const std::string_view path : paths)
    for (std::size_t slash = path.rfind('/'); slash > 0; slash = path.rfind('/', slash - 1))
      if (paths.contains(path.substr(0, slash)))
        throw std::invalid_argument(
            fmt::format("a model shows {} under '{}' and under '{}'; what holds values holds no other items", what,
                        path.substr(0, slash), path));
}

}  // namespace

gpu::ledger plan(gpu::device d, const model_functions& model) {
  gpu::ledger ledger = model.plan(d);
  ledger.add(memory_kind::device, sums_name, 2 * sizeof(metrics), "as they run, and after the last whole step");
  ledger.add(memory_kind::pinned, landing_name, 2 * sizeof(metrics));
  ledger.add(memory_kind::pinned, staging_name, staging_bytes, "for checkpoints");
  return ledger;
}

own_learner::own_learner(gpu::stream_ref stream, model_functions model, std::shared_ptr<gpu::memory> memory)
    : stream_(stream),
      model_(std::move(model)),
      memory_(std::move(memory)),
      on_device_(reinterpret_cast<sums*>(memory_->at(memory_kind::device, sums_name).data())),
      landing_(reinterpret_cast<sums*>(memory_->at(memory_kind::pinned, landing_name).data())),
      staging_(memory_->at(memory_kind::pinned, staging_name)),
      arrived_(stream.device()) {
  if (model_.name.empty())
    throw std::invalid_argument("a model has an empty name; checkpoints and errors tell it from others by its name");
  model_.bind(stream_, *memory_);
  model_.visit_state([this](const state_item& item) {
    check(item, "state", "/model/");
    items_.push_back(item);
  });
  if (model_.visit_gradients)
    model_.visit_gradients([this](const state_item& item) {
      check(item, "gradients", gradients_group);
      gradients_.push_back(item);
    });
  check_paths(items_, "state");
  check_paths(gradients_, "gradients");
  own_learner::reset({});
}

void own_learner::step(const pipeline::batch& batch, const step_place& place) {
  step_place own = place;
  own.sums = &on_device_->running;
  own.step = latest_.steps;
  model_.step(batch, own);
  if (!place.training) return;
  batches_in_step_ = place.ends ? 0 : place.begins ? 1 : batches_in_step_ + 1;
  if (!place.ends) return;
  gpu::copy(stream_, &on_device_->at_step, &on_device_->running, sizeof(metrics));
  ++latest_.steps;
}

void own_learner::discard() {
  gpu::copy(stream_, &on_device_->running, &on_device_->at_step, sizeof(metrics));
  batches_in_step_ = 0;
}

begun_step own_learner::begun() {
  if (gradients_.empty()) discard();
  if (batches_in_step_ == 0) return {};
  return {.batches = batches_in_step_, .running = progress().running};
}

void own_learner::go_on(const begun_step& step) {
  set_sums({step.running, progress().at_step});
  batches_in_step_ = step.batches;
}

void own_learner::reset(const metrics& start) { set_sums({start, start}); }

void own_learner::set_sums(const sums& to) {
  stream_.synchronize();  // an answer may be on its way to the landing place
  *landing_ = to;
  gpu::copy(stream_, on_device_, landing_, sizeof(sums));
  stream_.synchronize();
  take_sums();
}

train::progress own_learner::progress() {
  stream_.synchronize();
  fetch_sums();
  stream_.synchronize();
  take_sums();
  return latest_;
}

const train::progress& own_learner::latest_progress() {
  if (asked_ && arrived_.done()) take_sums();
  if (!asked_) {
    fetch_sums();
    arrived_.record(stream_);
    asked_ = true;
    if (stream_.device().is_host()) take_sums();
  }
  return latest_;
}

void own_learner::fetch_sums() { gpu::copy(stream_, landing_, on_device_, sizeof(sums)); }

void own_learner::take_sums() {
  asked_ = false;
  latest_.running = landing_->running;
  latest_.at_step = landing_->at_step;
}

void own_learner::read_state(const state_item& item, std::size_t offset, std::byte* to, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t piece = std::min(bytes - done, staging_.size());
    gpu::copy(stream_, staging_.data(), item.data + offset + done, piece);
    stream_.synchronize();
    std::memcpy(to + done, staging_.data(), piece);
    done += piece;
  }
}

void own_learner::write_state(const state_item& item, std::size_t offset, const std::byte* from, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t piece = std::min(bytes - done, staging_.size());
    std::memcpy(staging_.data(), from + done, piece);
    gpu::copy(stream_, item.data + offset + done, staging_.data(), piece);
    stream_.synchronize();
    done += piece;
  }
}

}  // namespace penstock::train
