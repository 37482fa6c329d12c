#include "at_work.hpp"

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <string>

#include "errors.hpp"

namespace penstock::python {
namespace {

/// A child that is forked begins with its parent's.
struct account {
  std::atomic<pid_t> process = 0;      ///< in which so many are
  std::atomic<std::size_t> count = 0;  ///< at work
  std::atomic<pid_t> threads_of = 0;   ///< the process that has begun the threads of loaders; 0: none has
};

account& of_process() {
  static account all;
  return all;
}

std::string forked_from(pid_t parent) { return "this process was forked from process " + std::to_string(parent); }

}  // namespace

at_work::at_work(with what) : process_(getpid()) {
  account& all = of_process();
  const pid_t parent = all.process, threads_of = all.threads_of;
  if (what == with::a_loader && threads_of != 0 && threads_of != process_)
    throw forked(forked_from(threads_of) +
                 ", which had made a loader: the threads that loaders share are that one's alone; start this process "
                 "with 'spawn', or fork it before the first loader is made");
  if (parent != process_) {
    if (all.count != 0)
      throw forked(forked_from(parent) +
                   ", where Penstock was at work then; close its loaders before the fork, or start this process with "
                   "'spawn'");
    all.process = process_;
  }
  ++all.count;
}

void at_work::begin_threads() { of_process().threads_of = process_; }

at_work::~at_work() {
  if (process_ == getpid()) --of_process().count;
}

}  // namespace penstock::python
