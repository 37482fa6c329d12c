#include "offloaded_moments.hpp"

#include <penstock/gpu/memory.hpp>

namespace penstock::train {
namespace {

std::vector<gpu::event> one_for_each_place(gpu::device d) {
  std::vector<gpu::event> events;
  for (std::size_t n = 0; n < piece_ring::places; ++n) events.emplace_back(d);
  return events;
}

}  // namespace

template <class T>
offloaded_moments<T>::offloaded_moments(gpu::stream_ref stream, piece_ring ring, std::vector<T*> moments, T* place)
    : stream_(stream),
      beside_(stream),
      ring_(ring),
      moments_(std::move(moments)),
      place_(place),
      began_(stream.device()),
      ended_(stream.device()),
      arrived_(one_for_each_place(stream.device())),
      worked_on_(one_for_each_place(stream.device())),
      returned_(one_for_each_place(stream.device())) {}

template <class T>
void offloaded_moments<T>::update(const work& f) {
  if (ring_.pieces() == 0) return;
  began_.record(stream_);
  began_.hold(beside_.in);
  // Pieces are fetched as far ahead as there are places, so that the link never waits for a launch.
  constexpr std::size_t ahead = piece_ring::places - 1;
  for (std::size_t n = 0; n < ring_.pieces() && n < ahead; ++n) fetch(n);
  for (std::size_t n = 0; n < ring_.pieces(); ++n) {
    if (n + ahead < ring_.pieces()) fetch(n + ahead);
    const std::size_t place = piece_ring::place(n);
    arrived_[place].hold(stream_);
    f(ring_.first(n), ring_.count(n), at(place, 0), moments_.size() > 1 ? at(place, 1) : nullptr);
    worked_on_[place].record(stream_);
    give_back(n);
  }
  ended_.record(beside_.out);
  ended_.hold(stream_);
}

template <class T>
void offloaded_moments<T>::fetch(std::size_t n) {
  const std::size_t place = piece_ring::place(n);
  // The first pieces find their places empty: the last update has ended before this one began.
  if (n >= piece_ring::places) returned_[place].hold(beside_.in);
  for (std::size_t array = 0; array < moments_.size(); ++array)
    gpu::copy(beside_.in, at(place, array), moments_[array] + ring_.first(n), ring_.count(n) * sizeof(T));
  arrived_[place].record(beside_.in);
}

template <class T>
void offloaded_moments<T>::give_back(std::size_t n) {
  const std::size_t place = piece_ring::place(n);
  worked_on_[place].hold(beside_.out);
  for (std::size_t array = 0; array < moments_.size(); ++array)
    gpu::copy(beside_.out, moments_[array] + ring_.first(n), at(place, array), ring_.count(n) * sizeof(T));
  returned_[place].record(beside_.out);
}

template class offloaded_moments<float>;
template class offloaded_moments<double>;

}  // namespace penstock::train
