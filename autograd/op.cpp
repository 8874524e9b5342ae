#include <carousel/autograd/op.h>

namespace carousel {

std::string_view to_string(Op op) {
  switch (op) {
#define CAROUSEL_OP(name) \
  case Op::name: return #name;
    CAROUSEL_OPS(CAROUSEL_OP)
#undef CAROUSEL_OP
    default: return "none";
  }
}

}  // namespace carousel
