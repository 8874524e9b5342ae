#pragma once

#include <carousel/tensor/dtype.h>
#include <carousel/tensor/kernels/strided.h>

namespace carousel::kernels {

/// The loop that copies elements of type `from` into type `to` (to bool: x != 0; floating point to int64: the
/// fraction is dropped, and the value must fit). A source of step 0 fills.
RunBody<2> copy_body(DType to, DType from);

}  // namespace carousel::kernels
