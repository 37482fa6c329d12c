#pragma once

#include <penstock/fault.hpp>
#include <penstock/gpu/device.hpp>
#include <penstock/handle.hpp>

struct CUstream_st;
struct CUevent_st;

namespace penstock::gpu {

/// A view of a stream on a device: CUDA work is issued to native(); work on the host device runs at once, on the
/// caller's thread, before the call returns. Cheap to copy; does not own.
///
/// Faults: a view made from a gpu::stream passes that stream's seam on. Each use asks it at fault_site::cuda_call under
/// the CUDA call's name ("cudaMemcpyAsync", "cudaEventRecord", "cudaGraphLaunch"); what the host device does in place
/// of a call asks under the same name.
class stream_ref {
 public:
  /// The host's stream.
  stream_ref() noexcept : device_(gpu::device::host()) {}
  /// A CUDA stream of yours on `d`; it must outlive every use of this view, as must `faults`.
  stream_ref(gpu::device d, CUstream_st* native, fault_injector* faults = nullptr) noexcept
      : device_(d), native_(native), faults_(faults) {}

  gpu::device device() const noexcept { return device_; }
  CUstream_st* native() const noexcept { return native_; }
  fault_injector* faults() const noexcept { return faults_; }
  /// Blocks the caller until everything issued to the stream is done. Throws gpu::error with an earlier asynchronous
  /// error.
  void synchronize() const;
  /// The same stream of the same device.
  friend bool operator==(stream_ref a, stream_ref b) noexcept {
    return a.device_ == b.device_ && a.native_ == b.native_;
  }

 private:
  gpu::device device_;
  CUstream_st* native_ = nullptr;
  fault_injector* faults_ = nullptr;
};

struct stream_traits {
  using native_type = CUstream_st*;
  static native_type empty() noexcept { return nullptr; }
  static void release(native_type) noexcept;
};

/// Owner of a non-blocking stream (it does not synchronise with stream 0). Destroying it does not wait: work that was
/// issued runs on.
class stream {
 public:
  /// `high_priority`: where the device has priorities, the highest. `faults` is asked by everything issued to the
  /// stream.
  explicit stream(gpu::device d, bool high_priority = false, fault_seam faults = {});
  operator stream_ref() const noexcept { return {device_, native_.native(), faults_.get()}; }
  stream_ref ref() const noexcept { return *this; }
  gpu::device device() const noexcept { return device_; }
  /// Blocks the caller until everything issued to the stream is done. Throws gpu::error with an earlier asynchronous
  /// error.
  void synchronize() const { ref().synchronize(); }

 private:
  gpu::device device_;
  fault_seam faults_;
  handle<stream_traits> native_;
};

/// For a thread that works on streams of its own beside a consumer's: while another thread captures a stream of its,
/// what this thread asks of `d` neither fails nor ends the capture. (CUDA otherwise forbids some calls, a query of an
/// event among them, to every thread of the process while one captures in the mode "global".) For as long as the thread
/// lives.
void work_beside_captures(device d, fault_injector* faults = nullptr);

struct event_traits {
  using native_type = CUevent_st*;
  static native_type empty() noexcept { return nullptr; }
  static void release(native_type) noexcept;
};

/// What an event is for, beside streams that wait for each other and done().
enum class event_use {
  order,    ///< nothing else
  timing,   ///< milliseconds_between() can use it, at a small cost for each record
  waiting,  ///< a thread sleeps in synchronize(). The device interrupts a processor whenever such an event happens,
            ///< which takes some 30 µs of it: not for an event for each block or batch.
};

/// A point in a stream's work. On the host device it has always happened.
class event {
 public:
  /// `faults` is asked by done() and synchronize(); record() and hold() ask the stream's.
  explicit event(gpu::device d, event_use use = event_use::order, fault_seam faults = {});
  /// Marks the work issued to `stream` so far. Does not block. Throws std::invalid_argument for a stream of another
  /// device.
  void record(stream_ref stream);
  /// Later work of `stream`, on any CUDA device, waits for the last record() of this event. Does not block the caller.
  /// Never recorded: no wait. Throws std::invalid_argument for a CUDA event and the host's stream: synchronize() does
  /// that.
  void hold(stream_ref stream) const;
  /// True once the last record() has happened. Throws gpu::error with an asynchronous error of the device.
  bool done() const;
  /// Blocks the caller until the last record() has happened; without using a processor where the event is for
  /// `waiting`.
  void synchronize() const;
  gpu::device device() const noexcept { return device_; }

 private:
  friend double milliseconds_between(const event& first, const event& last);
  gpu::device device_;
  fault_seam faults_;
  handle<event_traits> native_;
};

/// Device time between two timed events that have happened; 0 on the host.
double milliseconds_between(const event& first, const event& last);

}  // namespace penstock::gpu
