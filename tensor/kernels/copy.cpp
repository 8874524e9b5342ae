#include <carousel/tensor/dispatch.h>
#include <carousel/tensor/kernels/copy.h>
#include <carousel/tensor/kernels/map.h>

namespace carousel::kernels {
namespace {

template <class To>
struct Convert {
  template <class From>
  To operator()(From value) const {
    return static_cast<To>(value);
  }
};

}  // namespace

RunBody<2> copy_body(DType to, DType from) {
  return dispatch_all(to, [from](auto to_type) {
    using To = decltype(to_type);
    return dispatch_all(from, [](auto from_type) -> RunBody<2> { return map1<To, Convert<To>, decltype(from_type)>; });
  });
}

}  // namespace carousel::kernels
