#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

namespace penstock::python {

/// What functions of map() raise for epochs that nobody has asked for yet. A run reads ahead, past the last epoch of a
/// training too, and a function that knows no such epoch does not end the one in hand: what it raised is kept until a
/// loop comes there. Used with the GIL.
class foresight {
 public:
  /// A run begins at an epoch, and none of the run before is at work any more: what was kept of that counts no more.
  void begin(std::uint64_t epoch) noexcept;

  /// Rows of this epoch are wanted now. Throws the pipeline::error that was kept for it.
  void ask(std::uint64_t epoch);

  bool is_ahead(std::uint64_t epoch) const noexcept { return epoch > asked_; }
  /// Whether rows of this epoch will not be given to anybody.
  bool is_spoiled(std::uint64_t epoch) const noexcept { return first_ && first_->epoch <= epoch; }
  void forget() noexcept;
  /// `stage`: the function's name; `rows`: for people; `sentence`: what `cause` says.
  void keep(std::uint64_t epoch, std::string stage, std::string rows, std::string sentence, std::exception_ptr cause);

 private:
  struct failure {
    std::uint64_t epoch;
    std::string stage, rows, sentence;
    std::exception_ptr cause;
  };

  std::uint64_t asked_ = 0;       ///< the epoch in hand
  std::optional<failure> first_;  ///< of the epoch that comes first
};

}  // namespace penstock::python
