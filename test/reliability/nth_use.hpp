#pragma once

#include <penstock/fault.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::test {

/// Lets one use of a site fail, the n-th since arm(), and counts the uses: all of them, or those of some names alone.
/// Reads that succeed can be changed, too.
class nth_use final : public fault_injector {
 public:
  using damage = std::function<void(std::span<std::byte>)>;

  nth_use(fault_site site, fault what, std::vector<std::string> names = {})
      : site_(site), what_(what), names_(std::move(names)) {}
  /// The n-th read that succeeds is changed; or, at fault_site::decode, what the n-th decoder of `names` put out.
  explicit nth_use(damage change, fault_site site = fault_site::read_file, std::vector<std::string> names = {})
      : site_(site), names_(std::move(names)), change_(std::move(change)) {}

  void arm(std::int64_t n) { left_ = n, happened_ = false; }
  void disarm() { left_ = -1; }
  bool happened() const { return happened_; }
  std::chrono::steady_clock::time_point since() const { return since_; }

  fault before(fault_site site, std::string_view name, std::uint64_t, std::size_t) override {
    return !change_ && site == site_ && counts(name) && is_due() ? what_ : fault{};
  }
  void after_read(std::string_view, std::uint64_t, std::span<std::byte> bytes) override {
    if (change_ && site_ == fault_site::read_file && is_due()) change_(bytes);
  }
  void after_decode(std::string_view filter, std::span<std::byte> bytes) override {
    if (change_ && site_ == fault_site::decode && counts(filter) && !bytes.empty() && is_due()) change_(bytes);
  }

 private:
  bool counts(std::string_view name) const {
    return names_.empty() || std::find(names_.begin(), names_.end(), name) != names_.end();
  }
  bool is_due() {
    if (left_ < 0 || left_-- != 0) return false;
    since_ = std::chrono::steady_clock::now();
    happened_ = true;
    return true;
  }

  fault_site site_;
  fault what_{};
  std::vector<std::string> names_{};
  damage change_;
  std::atomic<std::int64_t> left_{-1};
  std::atomic<bool> happened_{false};
  std::atomic<std::chrono::steady_clock::time_point> since_{};
};

}  // namespace penstock::test
