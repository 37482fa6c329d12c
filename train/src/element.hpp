#pragma once

namespace penstock::train {

/// What values of S are computed and summed in, and what weights of a model in S are kept in.
template <class S>
struct arithmetic_of {
  using type = S;
};
template <class S>
using arithmetic = typename arithmetic_of<S>::type;

}  // namespace penstock::train
