#include "gather_kernel.cuh"
#include "gather_launch.hpp"

namespace penstock::gpu::cuda {
namespace {

struct keep {
  template <class Word>
  __device__ Word operator()(Word x) const {
    return x;
  }
};
struct swap_bytes {
  template <class Word>
  __device__ Word operator()(Word x) const {
    return convert::byte_swapped(x);
  }
};

// `plan` counts elements; here an element is a word.
template <class Word>
gather_plan in_words(gather_plan plan) {
  plan.elements = plan.source_row_bytes / sizeof(Word);
  return plan;
}

template <class Word, unsigned Width, class Each>
void launch_words(const kernel_launch& how, const gather_plan& plan) {
  return launch_move<Word, Word, Width>(how, in_words<Word>(plan), Each{});
}

// Unswapped bytes have no element: the widest unit that all addresses allow.
void launch_kept(const kernel_launch& how, const gather_plan& plan, unsigned alignment) {
  switch (alignment) {
    case 16: return launch_words<std::uint32_t, 4, keep>(how, plan);
    case 8: return launch_words<std::uint32_t, 2, keep>(how, plan);
    case 4: return launch_words<std::uint32_t, 1, keep>(how, plan);
    case 2: return launch_words<std::uint16_t, 1, keep>(how, plan);
    default: return launch_words<std::uint8_t, 1, keep>(how, plan);
  }
}

template <class Word>
void launch_swapped(const kernel_launch& how, const gather_plan& plan, unsigned alignment) {
  if (alignment == 16) return launch_words<Word, 16 / sizeof(Word), swap_bytes>(how, plan);
  return launch_words<Word, 1, swap_bytes>(how, plan);
}

}  // namespace

void launch_raw(const kernel_launch& how, const gather_plan& plan) {
  const unsigned alignment = std::min(source_alignment(plan), target_alignment(plan));
  if (!plan.swapped) return launch_kept(how, plan, alignment);
  switch (size_of(plan.from)) {
    case 2: return launch_swapped<std::uint16_t>(how, plan, alignment);
    case 4: return launch_swapped<std::uint32_t>(how, plan, alignment);
    default: return launch_swapped<std::uint64_t>(how, plan, alignment);
  }
}

}  // namespace penstock::gpu::cuda
