#include "descriptor.hpp"

#include <unistd.h>

namespace penstock::io {

void descriptor_traits::release(int fd) noexcept { ::close(fd); }

}  // namespace penstock::io
