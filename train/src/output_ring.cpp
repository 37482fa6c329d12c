#include "output_ring.hpp"

#include <penstock/gpu/memory.hpp>

namespace penstock::train {
namespace {

std::vector<gpu::event> one_for_each_place(gpu::device d) {
  std::vector<gpu::event> events;
  for (std::size_t n = 0; n < output_places::places; ++n) events.emplace_back(d);
  return events;
}

}  // namespace

output_ring::output_ring(gpu::stream_ref stream, std::vector<output> outputs)
    : stream_(stream),
      beside_(stream),
      outputs_(std::move(outputs)),
      places_{outputs_.size()},
      written_(one_for_each_place(stream.device())),
      left_(one_for_each_place(stream.device())),
      done_(one_for_each_place(stream.device())),
      arrived_(one_for_each_place(stream.device())) {}

void output_ring::before_writing(std::size_t k) {
  // The output before it in this place is one that was moved: it must have left.
  if (k >= output_places::places) left_[output_places::place(k)].hold(stream_);
}

void output_ring::written(std::size_t k, std::size_t rows) {
  if (!moved(k)) return;
  const std::size_t place = output_places::place(k);
  written_[place].record(stream_);
  written_[place].hold(beside_.out);
  gpu::copy(beside_.out, outputs_[k].on_host, outputs_[k].on_device, rows * outputs_[k].row_bytes);
  left_[place].record(beside_.out);
}

void output_ring::before_reading(std::size_t k) {
  if (moved(k)) arrived_[output_places::place(k)].hold(stream_);
}

void output_ring::done_with(std::size_t k, std::size_t rows) {
  if (k < output_places::places) return;
  const std::size_t place = output_places::place(k), next = k - output_places::places;
  done_[place].record(stream_);
  done_[place].hold(beside_.in);
  gpu::copy(beside_.in, outputs_[next].on_device, outputs_[next].on_host, rows * outputs_[next].row_bytes);
  arrived_[place].record(beside_.in);
}

}  // namespace penstock::train
