#include "reader_gate.hpp"

#include "start_thread.hpp"
#include "watching.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <new>
#include <system_error>

namespace penstock::pipeline {
namespace {

constexpr std::chrono::microseconds watch_of_a_reader{50};

}  // namespace

reader_gate::reader_gate(std::size_t workers, std::size_t readers, bool watchful, doors how)
    : workers_(workers), watchful_(watchful), how_(std::move(how)) {
  make_threads(readers);
  limit_ = std::min(readers, workers_ + own_.size());
}

reader_gate::~reader_gate() {
  for (std::jthread& thread : own_) thread.request_stop();
}

void reader_gate::let_in(ticket next) {
  std::list<ticket> comes{next};
  const std::lock_guard lock(mutex_);
  if (at_work_ < limit_)
    admit(comes);
  else
    waiting_.splice(waiting_.end(), comes);
}

/// The first of them.
void reader_gate::admit(std::list<ticket>& from) {
  if (workers_at_work_ < workers_) {
    how_.to_workers(from.front());  // or nothing has changed; its worker_done() waits for the lock
    from.pop_front();
    ++workers_at_work_;
  } else {
    for_own_.splice(for_own_.end(), from, from.begin());
    has_for_own_ = true;
    if (!watched_ || for_own_.size() > 1) changed_.notify_one();
  }
  ++at_work_;
}

void reader_gate::worker_done() {
  const std::lock_guard lock(mutex_);
  --workers_at_work_;
  done();
}

/// A block was read: others may take its place.
void reader_gate::done() {
  --at_work_;
  if (how_.readers) {
    const std::size_t readers = std::max<std::size_t>(1, how_.readers(!waiting_.empty()));
    if (readers > workers_ + own_.size()) make_threads(readers);
    limit_ = std::min(readers, workers_ + own_.size());
  }
  while (!waiting_.empty() && at_work_ < limit_) admit(waiting_);
}

/// A system that gives no more threads, or no memory for them, leaves it at those that there are, if there are any.
void reader_gate::make_threads(std::size_t readers) try {
  while (workers_ + own_.size() < readers)
    own_.emplace_back([this](std::stop_token stop) { read_on_own_thread(std::move(stop)); });
} catch (const std::system_error& e) {
  if (workers_ + own_.size() == 0) throw no_thread("reading blocks", e.code().message());
} catch (const std::bad_alloc&) {
  if (workers_ + own_.size() == 0) throw;
}

void reader_gate::read_on_own_thread(std::stop_token stop) {
  prctl(PR_SET_NAME, "penstock-reader");
  std::unique_lock lock(mutex_);
  for (;;) {
    if (watchful_ && for_own_.empty() && !watched_) watch_for_a_block(lock, stop);
    if (!changed_.wait(lock, stop, [&] { return !for_own_.empty(); })) return;
    std::list<ticket> next;
    next.splice(next.end(), for_own_, for_own_.begin());
    has_for_own_ = !for_own_.empty();
    lock.unlock();
    how_.read(next.front());
    lock.lock();
    done();
    lock.unlock();
    how_.pass_on(std::move(next));
    lock.lock();
  }
}

/// To wake a thread takes longer than a block's time on a fast link, and so long that who wakes it notices.
void reader_gate::watch_for_a_block(std::unique_lock<std::mutex>& lock, const std::stop_token& stop) {
  watched_ = true;
  lock.unlock();
  const auto until = std::chrono::steady_clock::now() + watch_of_a_reader;
  while (!has_for_own_ && !stop.stop_requested() && std::chrono::steady_clock::now() < until) pause_processor();
  lock.lock();
  watched_ = false;
}

}  // namespace penstock::pipeline
