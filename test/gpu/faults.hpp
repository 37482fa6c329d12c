#pragma once

#include <penstock/fault.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace penstock::test {

/// Fails every use of one site, under one name or any; keeps the names that it was asked for.
class failing_site : public fault_injector {
 public:
  failing_site(fault_site site, int error, std::string only = {})
      : site_(site), error_(error), only_(std::move(only)) {}

  fault before(fault_site site, std::string_view what, std::uint64_t, std::size_t bytes) override {
    const std::scoped_lock lock(mutex_);
    asked_.push_back({std::string(what), bytes});
    if (site != site_ || (!only_.empty() && what != only_)) return {};
    return {.error = error_};
  }

  struct use {
    std::string what;
    std::size_t bytes;
  };
  std::vector<use> asked() const {
    const std::scoped_lock lock(mutex_);
    return asked_;
  }

 private:
  mutable std::mutex mutex_;
  fault_site site_;
  int error_;
  std::string only_;
  std::vector<use> asked_;
};

}  // namespace penstock::test
