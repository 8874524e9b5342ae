#include <carousel/tensor/version.h>

namespace carousel {

std::string_view version() { return CAROUSEL_VERSION; }

}  // namespace carousel
