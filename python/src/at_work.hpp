#pragma once

#include <sys/types.h>

namespace penstock::python {

/// Penstock is at work in this process, as long as this lives. A child that is forked has none of its parent's threads,
/// but their locks as they were, and the scheduler that counts on them: what waits for them there waits for ever,
/// crashes (oneTBB's list of waiting threads lies on their stacks), or reads with one thread where there should be
/// many.
class at_work {
 public:
  enum class with {
    a_call,    ///< that may hold libhdf5's lock, and ends
    a_loader,  ///< oneTBB's threads too, which stay when it is closed
  };

  /// Throws forked in a child that was forked while anything was at work, and for a loader also in one whose parent had
  /// begun the threads of any.
  explicit at_work(with what);
  ~at_work();
  at_work(const at_work&) = delete;
  at_work& operator=(const at_work&) = delete;

  /// oneTBB's threads may begin: from here on, no child can make a loader. One that was refused before has begun none.
  void begin_threads();

 private:
  const pid_t process_;
};

}  // namespace penstock::python
