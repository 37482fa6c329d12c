#include "flow.hpp"

#include "in_order_exit.hpp"
#include "reader_gate.hpp"
#include "start_thread.hpp"

#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

namespace penstock::pipeline {
namespace {

using node = tbb::flow::function_node<ticket, ticket>;

// The driver and the thread that hands blocks on both take part in the arena without being TBB's workers.
constexpr int outside_threads = 2;

}  // namespace

struct flow::impl {
  impl(std::size_t threads, std::vector<stage> stages, std::function<void(std::uint64_t)> out, reading how)
      : workers(flow_workers(threads)),
        arena(static_cast<int>(workers) + 1, outside_threads),
        bodies(std::move(stages)),
        deliver(std::move(out)) {
    reader_gate::doors doors{.to_workers = {},
                             .read = [this](ticket t) { bodies.front().body(t.block); },
                             .pass_on = [this](std::list<ticket> one) { exit.pass(std::move(one)); },
                             .readers = std::move(how.readers)};
    if (how.apart && bodies.size() == 1) {
      gate.emplace(0, bodies.front().concurrency, how.watchful, std::move(doors));
      return;
    }
    try {
      arena.execute([&] { build(); });
    } catch (const std::runtime_error& e) {  // oneTBB's, of its workers
      throw no_thread("the flow of blocks", e.what());
    }
    doors.to_workers = [this](ticket t) { nodes.front()->try_put(t); };
    doors.pass_on = [this](const std::list<ticket>& one) {
      if (nodes.size() > 1)
        nodes[1]->try_put(one.front());
      else
        in_order->try_put(one.front());
    };
    gate.emplace(std::min(bodies.front().concurrency, workers), bodies.front().concurrency, how.watchful,
                 std::move(doors));
    drive();
  }

  void let_out(ticket t) {
    deliver(t.block);
    const std::lock_guard lock(mutex);
    if (++came_out == submitted) idle.notify_all();
  }

  void drive() {
    graph->reserve_wait();
    try {
      driver = start_thread("the flow of blocks", [this] { arena.execute([this] { graph->wait_for_all(); }); });
    } catch (...) {
      graph->release_wait();  // the graph's end waits for it
      throw;
    }
  }

  void build() {
    graph.emplace();
    for (const stage& s : bodies)
      nodes.push_back(
          std::make_unique<node>(*graph, s.concurrency, [&body = s.body, this, first = nodes.empty()](ticket t) {
            body(t.block);
            if (first) gate->worker_done();
            return t;
          }));
    in_order.emplace(*graph, [](const ticket& t) { return static_cast<std::size_t>(t.sequence); });
    sink.emplace(*graph, tbb::flow::serial, [this](ticket t) {
      let_out(t);
      return tbb::flow::continue_msg{};
    });
    for (std::size_t i = 0; i + 1 < nodes.size(); ++i) tbb::flow::make_edge(*nodes[i], *nodes[i + 1]);
    tbb::flow::make_edge(*nodes.back(), *in_order);
    tbb::flow::make_edge(*in_order, *sink);
  }

  /// An edge between nodes is a task, too. Where the flow is not even begun, that must not be left to the graph's end,
  /// which comes after the nodes'.
  struct unfinished_edges {
    impl& of;
    ~unfinished_edges() {
      try {
        if (of.graph) of.arena.execute([this] { of.graph->wait_for_all(); });
      } catch (...) {  // of a thread that oneTBB wants, and does without
      }
    }
  };

  /// More threads than processors are a user's right: storage may need them. TBB has no more workers, and raising its
  /// limit for a while was seen to leave later arenas without any; so the rest are the gate's.
  std::size_t workers;
  tbb::task_arena arena;
  std::vector<stage> bodies;
  std::function<void(std::uint64_t)> deliver;
  in_order_exit exit{[this](ticket t) { let_out(t); }};
  std::optional<tbb::flow::graph> graph;  ///< unless reading is apart
  std::vector<std::unique_ptr<node>> nodes;
  std::optional<tbb::flow::sequencer_node<ticket>> in_order;
  std::optional<tbb::flow::function_node<ticket>> sink;
  const unfinished_edges edges{*this};  ///< after the nodes: it ends before them
  std::optional<reader_gate> gate;
  std::thread driver;
  std::mutex mutex;
  std::condition_variable idle;
  std::uint64_t submitted = 0;
  std::uint64_t came_out = 0;
};

std::size_t flow_workers(std::size_t threads) {
  return std::min(threads, tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism));
}

flow::flow(std::size_t threads, std::vector<stage> stages, std::function<void(std::uint64_t)> out, reading how)
    : impl_(std::make_unique<impl>(threads, std::move(stages), std::move(out), std::move(how))) {}

flow::~flow() {
  drain();
  impl_->gate.reset();
  if (!impl_->graph) return;
  impl_->graph->release_wait();
  impl_->driver.join();
}

void flow::submit(std::uint64_t block) {
  ticket next{0, block};
  {
    const std::lock_guard lock(impl_->mutex);
    next.sequence = impl_->submitted++;
  }
  try {
    impl_->gate->let_in(next);
  } catch (...) {  // it is not inside: drain() must not wait for it
    const std::lock_guard lock(impl_->mutex);
    --impl_->submitted;
    throw;
  }
}

void flow::drain() {
  std::unique_lock lock(impl_->mutex);
  impl_->idle.wait(lock, [&] { return impl_->came_out == impl_->submitted; });
}

void flow::inside(const std::function<void()>& work) { impl_->arena.execute(work); }

}  // namespace penstock::pipeline
