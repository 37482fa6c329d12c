#pragma once

#include <condition_variable>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace penstock::io {

/// At most `capacity` open things, by number; opened on demand, the least recently used closed first. Thread-safe.
/// A thread holds one thing of a kind at a time: then waiting for a place always ends.
template <class Thing>
class open_files {
 public:
  explicit open_files(std::size_t capacity) : capacity_(capacity > 0 ? capacity : 1) {}

  /// The thing of number `key`; `open()` makes it where it is not open. While all places are in use, waits. Throws what
  /// `open()` does, and std::bad_alloc.
  template <class Open>
  std::shared_ptr<Thing> acquire(std::size_t key, Open&& open) {
    std::unique_lock lock(mutex_);
    try {
      return find_or_open(key, open, lock);
    } catch (...) {
      returned_.notify_one();  // the place that was returned, or made, is another's
      throw;
    }
  }

  /// Closes what nobody uses.
  void close_idle() {
    const std::lock_guard lock(mutex_);
    while (evict()) {
    }
  }

 private:
  struct place {
    std::size_t key;
    std::shared_ptr<Thing> thing;
    std::size_t users = 0;
  };

  template <class Open>
  std::shared_ptr<Thing> find_or_open(std::size_t key, Open& open, std::unique_lock<std::mutex>& lock) {
    for (;;) {
      if (const auto found = places_.find(key); found != places_.end()) {
        order_.splice(order_.begin(), order_, found->second);
        return lend(*found->second);
      }
      if (places_.size() < capacity_ || evict()) break;
      returned_.wait(lock);
    }
    // Opened under the lock: two threads never open the same file, and no more than `capacity_` are open at any time.
    try {
      const auto at = places_.try_emplace(key, order_.end()).first;
      order_.push_front({key, open()});
      at->second = order_.begin();
    } catch (...) {
      places_.erase(key);
      throw;
    }
    return lend(order_.front());
  }

  /// Whose end tells that a thing is not used any more; at first, of none.
  struct loan {
    open_files* from = nullptr;
    place* of = nullptr;
    loan() = default;
    loan(const loan&) = delete;
    loan& operator=(const loan&) = delete;
    ~loan() {
      if (from == nullptr) return;
      const std::lock_guard lock(from->mutex_);
      --of->users;
      from->returned_.notify_one();
    }
  };

  /// A pointer that tells when its last copy goes. Where there is no memory for that, nothing is lent: a pointer's
  /// deleter would be called at once, and wait for the lock.
  std::shared_ptr<Thing> lend(place& at) {
    const auto lent = std::make_shared<loan>();
    lent->from = this;
    lent->of = &at;
    ++at.users;
    return std::shared_ptr<Thing>(lent, at.thing.get());
  }

  bool evict() {
    for (auto p = order_.rbegin(); p != order_.rend(); ++p)
      if (p->users == 0) {
        places_.erase(p->key);
        order_.erase(std::next(p).base());
        return true;
      }
    return false;
  }

  std::mutex mutex_;
  std::condition_variable returned_;
  std::list<place> order_;  // most recently used first
  std::unordered_map<std::size_t, typename std::list<place>::iterator> places_;
  std::size_t capacity_;
};

}  // namespace penstock::io
