#include "batch_lease.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace penstock::pipeline {
namespace {

/// A use after its time is named; what never was a batch has nothing to name.
void refuse_late_use(const batch& of, std::string_view what) {
  if (!of && of.rows() > 0)
    throw std::invalid_argument(
        fmt::format("{} of batch {} of epoch {} is asked for after the batch was released or moved away", what,
                    of.index(), of.epoch()));
}

}  // namespace

batch::batch() noexcept = default;

batch::batch(batch&& other) noexcept
    : epoch_(other.epoch_),
      index_(other.index_),
      rows_(other.rows_),
      valid_rows_(other.valid_rows_),
      mask_(other.mask_),
      stream_(other.stream_),
      ticket_(other.ticket_),
      lease_(std::move(other.lease_)) {}

batch& batch::operator=(batch&& other) noexcept {
  if (this == &other) return *this;
  release();
  epoch_ = other.epoch_;
  index_ = other.index_;
  rows_ = other.rows_;
  valid_rows_ = other.valid_rows_;
  mask_ = other.mask_;
  stream_ = other.stream_;
  ticket_ = other.ticket_;
  lease_ = std::move(other.lease_);
  return *this;
}

batch::~batch() { release(); }

void batch::release() {
  if (const auto lease = std::exchange(lease_, nullptr)) lease->release(ticket_);
}

void batch::used_on(gpu::stream_ref other) {
  refuse_late_use(*this, "use on another stream");
  if (lease_) lease_->used_on(ticket_, other);
}

field_view batch::view(std::string_view name) const {
  if (lease_) return lease_->view(ticket_, name);
  const std::string field = fmt::format("field '{}'", name);
  refuse_late_use(*this, field);
  throw std::invalid_argument(field + " is asked for, and there is no batch");
}

std::vector<field_view> batch::fields() const {
  refuse_late_use(*this, "the list of fields");
  return lease_ ? lease_->views(ticket_) : std::vector<field_view>{};
}

std::string_view batch::damage_mask() const noexcept {
  return lease_ ? std::string_view(lease_->damage_mask()) : std::string_view();
}

std::vector<std::uint64_t> batch::row_ids() const {
  refuse_late_use(*this, "the list of row numbers");
  return lease_ ? lease_->row_ids(ticket_) : std::vector<std::uint64_t>{};
}

std::vector<row_identity> batch::row_identities(std::string_view field) const {
  refuse_late_use(*this, "the list of row identities");
  return lease_ ? lease_->row_identities(ticket_, field) : std::vector<row_identity>{};
}

field_view batch::typed_view(std::string_view name, type element) const {
  const field_view found = view(name);
  if (found.element != element)
    throw std::invalid_argument(
        fmt::format("field '{}' of the batch is {}, not {}", name, name_of(found.element), name_of(element)));
  return found;
}

}  // namespace penstock::pipeline
