#include "stream_loader.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <string>

#include "errors.hpp"
#include "gil.hpp"

namespace penstock::python {
namespace nb = nanobind;
namespace {

pipeline::source source_of(const loader_request& request, made_for what) {
  pipeline::source source = make_source(request.source, what);
  if (request.damaged) source.damaged(*request.damaged);
  return source;
}

pipeline::pipeline build(const loader_request& request, const row_maps& maps, kept_criteria& kept,
                         std::optional<pipeline::calibration>& measured, at_work& here) {
  const without_gil unlocked;
  std::vector<pipeline::host_transform> transforms;
  if (!maps.empty()) transforms = maps.transforms(pipeline::read(source_of(request, made_for::shapes)).open().fields());
  auto description = pipeline::read(source_of(request, made_for::batches), request.order);
  for (pipeline::host_transform& one : transforms) description = std::move(description) | std::move(one);
  description = std::move(description) | request.batches | request.shard | request.transport | request.trace;
  const gpu::device device = gpu::device::parse(request.device);
  if (request.calibrate) {
    for (row_criteria& one : kept) one.keep_answers();
    here.begin_threads();  // though it may be refused yet: calibrating begins with what the loader does
    measured = pipeline::calibrate(description, device, request.budget, {}, *request.calibrate);
    description = std::move(description) | *measured;
    for (row_criteria& one : kept) one.keep_answers();
  }
  pipeline::opened opened = description.open();
  const pipeline::pipeline_plan plan = opened.plan(device, request.budget);
  auto memory = std::make_shared<gpu::memory>(device, plan.ledger);
  here.begin_threads();
  return std::move(opened).build(plan, std::move(memory));
}

constexpr std::chrono::milliseconds between_looks{100};  // at signals

/// Runs signal handlers, if this is the main thread: Ctrl-C ends the wait.
void look_at_signals() {
  const with_gil locked;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

constexpr std::uint64_t no_epochs = 0, all_epochs = std::uint64_t{1} << 20;  // more than anybody trains

constexpr std::uintptr_t per_thread_stream = 2;  // cudaStreamPerThread

/// As many epochs as fit in a run's positions, at the most.
std::uint64_t that_fit(std::uint64_t epochs, std::uint64_t rows) {
  return std::min(epochs, std::max<std::uint64_t>((std::uint64_t{1} << 61) / std::max<std::uint64_t>(rows, 1), 1));
}

}  // namespace

stream_loader::stream_loader(loader_request request, kept_criteria& kept)
    : process_(getpid()),
      at_work_(std::make_unique<at_work>(at_work::with::a_loader)),
      budget_(request.budget),
      maps_(std::move(request.maps)),
      pipeline_(std::make_unique<pipeline::pipeline>(build(request, maps_, kept, measured_, *at_work_))) {}

void stream_loader::refuse_waiting() const {
  if (whose_turn_ == std::this_thread::get_id())
    throw error(
        "the loader waits for a batch on this thread; a signal handler can raise an exception, and use it later");
}

stream_loader::turn::turn(const stream_loader& of) : of_(of) {
  of_.refuse_waiting();
  while (!of_.mutex_.try_lock_for(between_looks)) look_at_signals();
  of_.whose_turn_ = std::this_thread::get_id();
}

stream_loader::turn::~turn() {
  of_.whose_turn_ = std::thread::id{};
  of_.mutex_.unlock();
}

stream_loader::~stream_loader() {
  if (getpid() == process_) {
    if (maps_.run_here()) {
      close_on_main_thread();
      return;
    }
    {
      const without_gil unlocked;
      end();
    }
    maps_.let_go();
    return;
  }
  (void)range_.release();  // their threads are the parent's; there is nobody to stop or to wait for
  (void)pipeline_.release();
}

void stream_loader::refuse_child() const {
  if (getpid() == process_) return;
  throw forked("this loader belongs to process " + std::to_string(process_) +
               ", whose threads and device a forked child does not have; use it there, where one loader reads on all "
               "processors by itself, or start this process with 'spawn' and make a loader in it");
}

const pipeline::pipeline& stream_loader::built() const {
  if (!pipeline_ || is_cleared_) throw closed();
  return *pipeline_;
}

void stream_loader::refuse_caller() const {
  refuse_child();
  if (maps_.run_here())
    throw error(
        "a function of map() used the loader that calls it, which would wait for itself; a function may use another "
        "loader");
}

void stream_loader::close_on_main_thread() noexcept {
  struct remains {
    std::unique_ptr<at_work> counted;
    row_maps maps;
    std::unique_ptr<pipeline::pipeline> pipeline;
    std::unique_ptr<pipeline::epoch_range> range;
  };
  const auto close = [](void* of) {
    const std::unique_ptr<remains> last(static_cast<remains*>(of));
    {
      const without_gil unlocked;
      last->range.reset();
      last->pipeline.reset();
    }
    last->maps.let_go();
    return 0;
  };
  auto* const last = new remains{std::move(at_work_), std::move(maps_), std::move(pipeline_), std::move(range_)};
  (void)Py_AddPendingCall(close, last);  // where there are too many, this one lasts as long as the process
}

std::string stream_loader::state(std::uint64_t epoch, std::uint64_t batch) const {
  return look_at([&](const pipeline::pipeline& pipe) { return pipe.state({epoch, batch}); });
}

std::pair<std::uint64_t, std::uint64_t> stream_loader::resume_at(const std::string& state) const {
  const pipeline::run_position at = look_at([&](const pipeline::pipeline& pipe) { return pipe.resume_at(state); });
  return {at.epoch, at.batch};
}

void stream_loader::do_apart(std::function<void()> work) {
  const std::shared_ptr<nb::object> keep(new nb::object(nb::find(*this)), [](nb::object* self) {
    if (!Py_IsInitialized()) return;
    const with_gil locked;
    delete self;
  });
  const without_gil unlocked;
  std::packaged_task<void()> task([keep, work = std::move(work)] { work(); });
  std::future<void> done = task.get_future();
  std::thread worker(std::move(task));
  try {
    while (done.wait_for(between_looks) != std::future_status::ready) look_at_signals();
  } catch (...) {
    worker.detach();
    throw;
  }
  worker.join();
  done.get();
}

void stream_loader::begin(std::uint64_t epoch, std::uint64_t batch, std::optional<std::uintptr_t> stream,
                          std::optional<std::uint64_t> epochs) {
  refuse_caller();
  refuse_waiting();
  // A run of nothing first: it is refused where the run before must go on, and ends that otherwise. A function of map()
  // can so be told for which of the two it works, whenever it is called.
  const auto end_run = [=, this] { begin_run({epoch, 0}, no_epochs, stream); };
  if (stream == per_thread_stream) {  // it is marked, and is another one on another thread
    const without_gil unlocked;
    end_run();
  } else {
    do_apart(end_run);
  }
  maps_.ahead().begin(epoch);
  const without_gil unlocked;
  begin_run({epoch, batch}, epochs.value_or(all_epochs), stream);
}

void stream_loader::begin_run(pipeline::run_position at, std::uint64_t epochs, std::optional<std::uintptr_t> stream) {
  const turn mine(*this);
  const pipeline::pipeline& pipe = built();
  pipeline::consume_options options{
      .stop = stop_.get_token(), .first_batch = at.batch, .while_waiting = &look_at_signals};
  if (stream && pipe.device().is_cuda()) options.stream = gpu::stream_ref(pipe.device(), native_stream(*stream));
  range_ = std::make_unique<pipeline::epoch_range>(
      pipeline_->epochs(at.epoch, that_fit(epochs, pipe.rows()), std::move(options)));
}

std::optional<batch_handle> stream_loader::next(std::uint64_t epoch, std::uint64_t index, std::uint64_t asked) {
  refuse_caller();
  maps_.ahead().ask(epoch);
  const without_gil unlocked;
  const turn mine(*this);
  built();
  if (!range_) return std::nullopt;
  pipeline::batch batch = range_->next();
  if (!batch || batch.epoch() != epoch || batch.index() != index) return std::nullopt;
  return batch_handle(std::move(batch), asked);
}

void stream_loader::pause() noexcept {
  // The garbage collector may call this on any thread, at any time.
  if (getpid() != process_ || whose_turn_ == std::this_thread::get_id()) return;
  const std::unique_lock mine(mutex_, std::try_to_lock);
  if (!mine || !pipeline_) return;
  try {
    pipeline_->pause();
  } catch (const std::exception&) {  // no memory: then this time counts
  }
}

void stream_loader::close() {
  if (getpid() != process_) return;
  refuse_caller();
  refuse_waiting();
  do_apart([this] { end(); });
  maps_.let_go();  // here: where the interpreter ends, no other thread gets the GIL
}

void stream_loader::end() {
  stop_.request_stop();  // whoever waits for a batch lets go of the lock
  const turn mine(*this);
  if (pipeline_) last_report_ = pipeline_->report();
  range_.reset();
  {
    std::unique_ptr<pipeline::pipeline> last;
    const std::lock_guard there(there_);
    if (pipeline_) last_plan_ = pipeline_->plan();
    last.swap(pipeline_);
  }
  at_work_.reset();
}

void stream_loader::clear() noexcept {
  is_cleared_ = true;  // rows that no function has worked on are given to nobody
  maps_.let_go();
}

pipeline::pipeline_plan stream_loader::plan() const {
  refuse_child();
  const std::lock_guard there(there_);
  return last_plan_ ? *last_plan_ : built().plan();
}

pipeline::pipeline_report stream_loader::report(const pipeline::machine_limits& limits) const {
  refuse_caller();
  const without_gil unlocked;
  const turn mine(*this);
  if (!last_report_) return built().report(limits);
  pipeline::pipeline_report last = *last_report_;
  last.limits = limits;
  last.bottleneck = bottleneck_of(last);
  return last;
}

std::uint64_t stream_loader::write_trace(const std::string& file) const {
  refuse_caller();
  const without_gil unlocked;
  const turn mine(*this);
  return built().write_trace(file);
}

}  // namespace penstock::python
