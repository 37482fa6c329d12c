#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "raised.hpp"

namespace penstock::python {

/// What functions of map() raise for epochs that nobody has asked for yet. A run reads ahead, past the last epoch of a
/// training too, and a function that knows no such epoch does not end the one in hand: what it raised is kept until a
/// loop comes there. Used with the GIL.
class foresight {
 public:
  /// Which epochs are ahead; to be put back where a run could not begin.
  struct place {
    std::uint64_t run = 0;
    std::uint64_t epoch = 0;  ///< that is asked for
  };

  /// A run begins at an epoch; what was kept of the one before counts no more. Returns how it was.
  place begin(std::uint64_t epoch) noexcept;
  void put_back(const place& before) noexcept { now_ = before; }

  /// Rows of this epoch are wanted now. Throws the pipeline::error that was kept for it.
  void ask(std::uint64_t epoch);

  bool is_ahead(std::uint64_t epoch) const noexcept { return epoch > now_.epoch; }
  /// Whether rows of this epoch will not be given to anybody.
  bool is_spoiled(std::uint64_t epoch) const noexcept;
  void forget() noexcept { first_.reset(); }
  /// `stage`: the function's name; `rows`: for people.
  void keep(std::uint64_t epoch, std::string stage, std::string rows, raised what);

 private:
  struct failure {
    std::uint64_t run, epoch;
    std::string stage, rows;
    raised what;
  };

  place now_;
  std::uint64_t runs_ = 0;
  std::optional<failure> first_;  ///< of the epoch that comes first
};

}  // namespace penstock::python
