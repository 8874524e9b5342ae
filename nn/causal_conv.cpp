#include <carousel/nn/causal_conv.h>

#include <carousel/autograd/record.h>
#include <carousel/nn/recurrent.h>
#include <carousel/tensor/dispatch.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/kernels/causal_conv.h>

#include <algorithm>

namespace carousel {
namespace {

using namespace recurrent;  // NOLINT: time-major sequences and their breaks

void check_conv(const Variable& x, const Variable& window, const Variable& weight, const Variable& bias,
                const SequenceOptions& options) {
  check<ShapeError>(x.rank() == 3, "causal_conv", "x must be [B, T, I]: got {}", to_string(x.shape()));
  const int64_t batch = x.size(0), channels = x.size(2);
  check<ShapeError>(weight.rank() == 2 && weight.size(0) == channels && weight.size(1) >= 1, "causal_conv",
                    "weight must be [I, W] with I = {}: got {}", channels, to_string(weight.shape()));
  const Shape past{batch, channels, weight.size(1) - 1};
  check<ShapeError>(window.shape() == past, "causal_conv", "window must have shape {}: got {}", to_string(past),
                    to_string(window.shape()));
  check<ShapeError>(bias.shape() == Shape{channels}, "causal_conv", "bias must have shape [{}]: got {}", channels,
                    to_string(bias.shape()));
  for (const Variable* other : {&window, &weight, &bias}) {
    check<ValueError>(other->dtype() == x.dtype(), "causal_conv", "all must have the dtype of x, {}: got {}",
                      to_string(x.dtype()), to_string(other->dtype()));
  }
  check_options("causal_conv", batch, x.size(1), options);
}

// Everything that the kernels read, without gaps; x is time-major.
struct Inputs {
  Tensor x, window, weight;
  Breaks breaks;

  kernels::CausalConvShape shape() const { return {breaks.shape(x, {0, x.size(0)}), x.size(2), weight.size(1)}; }
};

// What backward has gathered on its way to the first step.
struct Gathered {
  Tensor dx;              // [T, B, I], of the steps behind it
  Tensor dweight, dbias;  // sums over them
  Tensor dwindow;         // of the window that it has come to; undefined: zeros
};

// Steps first .. last - 1.
template <class T>
void run_block(const Inputs& in, const Tensor& dy, int64_t first, int64_t last, const Visit& visit, Gathered& sums) {
  const Shape& state = in.window.shape();
  Tensor dweight(in.weight.shape(), dy.dtype()), dbias({in.weight.size(0)}, dy.dtype()), before(state, dy.dtype());
  kernels::CausalConvGradients<T> out{.dx = sums.dx.mutable_data<T>(),
                                      .dweight = dweight.mutable_data<T>(),
                                      .dbias = dbias.mutable_data<T>(),
                                      .dwindow = before.mutable_data<T>()};
  Tensor windows, dwindows;
  if (visit.visitor) {
    windows = Tensor({last - first, state[0], state[1], state[2]}, dy.dtype());
    dwindows = Tensor(windows.shape(), dy.dtype());
    out.windows = windows.mutable_data<T>();
    out.dwindows = dwindows.mutable_data<T>();
  }
  kernels::causal_conv_backward<T>(in.shape(), first, last, in.x.data<T>(), in.window.data<T>(), in.weight.data<T>(),
                                   dy.data<T>(), sums.dwindow.defined() ? sums.dwindow.data<T>() : nullptr, out);
  add_(sums.dweight, dweight);
  add_(sums.dbias, dbias);
  sums.dwindow = before;
  if (visit.visitor) {
    visit.visitor(
        {.layer = visit.layer, .first_step = first, .saved = {{"conv", windows}}, .gradient = {{"conv", dwindows}}});
  }
}

// The gradients of x, window, weight and bias.
Gradients backward(const Inputs& in, std::span<const Tensor> dys, const Visit& visit) {
  const DType dtype = in.x.dtype();
  const Tensor dy = dys[0].defined() ? time_major(dys[0]) : zeros(in.x.shape(), dtype);
  Gathered sums{.dx = Tensor(in.x.shape(), dtype),
                .dweight = zeros_like(in.weight),
                .dbias = zeros({in.weight.size(0)}, dtype),
                .dwindow = dys[1].defined() ? dys[1].contiguous() : dys[1]};
  const auto run = dtype == DType::float32 ? run_block<float> : run_block<double>;
  for (const auto& [first, steps] : visit.blocks(in.x.size(0))) {
    run(in, dy, first, first + steps, visit, sums);
  }
  return {sums.dx.transpose(0, 1), sums.dwindow, sums.dweight, sums.dbias};
}

}  // namespace

CausalConvResult causal_conv(const Variable& x, const Variable& window, const Variable& weight, const Variable& bias,
                             const SequenceOptions& options) {
  check_conv(x, window, weight, bias, options);
  const Inputs in{.x = time_major(x.value()),
                  .window = window.value().contiguous(),
                  .weight = weight.value().contiguous(),
                  .breaks = Breaks::of(options)};
  Tensor y(in.x.shape(), x.dtype()), last(window.shape(), x.dtype());
  dispatch_floating("causal_conv", x.dtype(), [&in, &bias, &y, &last](auto type) {
    using T = decltype(type);
    kernels::causal_conv(in.shape(), in.x.data<T>(), in.window.data<T>(), in.weight.data<T>(),
                         bias.value().contiguous().data<T>(), y.mutable_data<T>(), last.mutable_data<T>());
  });
  const Variables parents{x, window, weight, bias};
  const Variables results =
      record(Op::causal_conv, {y.transpose(0, 1), last}, parents,
             [x = Saved(in.x), window = Saved(in.window), weight = Saved(in.weight), breaks = SavedBreaks(in.breaks),
              visit = Visit{options.visitor, options.path}](std::span<const Tensor> dys) {
               return backward({x.get(), window.get(), weight.get(), breaks.get()}, dys, visit);
             });
  return {.output = results[0], .window = results[1]};
}

}  // namespace carousel
