#include <carousel/nn/linear_recurrence.h>

#include <carousel/autograd/elementwise.h>
#include <carousel/nn/recurrent.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/dispatch.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/join.h>
#include <carousel/tensor/kernels/linear_recurrence.h>
#include <carousel/tensor/reduce.h>

namespace carousel {
namespace {

using namespace recurrent;  // NOLINT: the parts this is put together from

void check_operands(const Variable& a, const Variable& b, const Variable& h0, const SequenceOptions& options) {
  check<ShapeError>(b.rank() == 3, "linear_recurrence", "b must be [B, T, H]: got {}", to_string(b.shape()));
  const int64_t batch = b.size(0), steps = b.size(1), hidden = b.size(2);
  check<ShapeError>(a.shape() == Shape{hidden} || a.shape() == b.shape(), "linear_recurrence",
                    "a must be [H] or of the shape of b, {}: got {}", to_string(b.shape()), to_string(a.shape()));
  check<ShapeError>(h0.shape() == Shape{batch, hidden}, "linear_recurrence", "h0 must be [B, H] of b, {}: got {}",
                    to_string(b.shape()), to_string(h0.shape()));
  check<ValueError>(a.dtype() == b.dtype() && h0.dtype() == b.dtype(), "linear_recurrence",
                    "a, b and h0 must have one dtype: got {}, {} and {}", to_string(a.dtype()), to_string(b.dtype()),
                    to_string(h0.dtype()));
  check_options("linear_recurrence", batch, steps, options);
}

// a as the kernel reads it: [H], or time-major.
Tensor factors_of(const Tensor& a) { return a.rank() == 1 ? a.contiguous() : time_major(a); }

template <class T>
kernels::RecurrenceFactors<T> kernel_factors(const Tensor& a) {
  return {.a = a.data<T>(), .stride = a.rank() == 1 ? 0 : a.size(2)};
}

struct RecurrenceKept {
  SavedBreaks breaks;
  Saved a, h0, h;  // [H] or [T, B, H], [B, H], [T, B, H]
  Visit visit;
  bool wants_da;
};

// d loss / d a: what arrives at each state times the state before it, which is zero where it was cut off.
Tensor factor_gradient(const RecurrenceKept& kept, const Tensor& dh) {
  const Tensor& h = kept.h.get();
  const std::vector<Tensor> before{kept.h0.get().unsqueeze(0), h.slice(0, {.stop = -1})};
  const Tensor da = dh * kept.breaks.get().seen(concatenate(before, 0), 0);
  return kept.a.get().rank() == 1 ? sum(all_rows(da), {0}) : da.transpose(0, 1);
}

// The gradients of a, b and h0, from those of all states and of the last one.
Gradients backward(const RecurrenceKept& kept, std::span<const Tensor> dys) {
  const Tensor &a = kept.a.get(), &h = kept.h.get();
  const Tensor dy = time_major(dys[0]), dlast = without_gaps(dys[1]);
  Tensor dh(h.shape(), h.dtype()), dh0(kept.h0.get().shape(), h.dtype());
  dispatch_floating("linear_recurrence", h.dtype(), [&kept, &a, &h, &dy, &dlast, &dh, &dh0](auto type) {
    using T = decltype(type);
    kernels::linear_recurrence_backward(kept.breaks.get().recurrence(h, {0, h.size(0)}), kernel_factors<T>(a),
                                        data_or_null<T>(dy), data_or_null<T>(dlast), dh.mutable_data<T>(),
                                        dh0.mutable_data<T>());
  });
  NamedTensors saved{{"h", h}};
  if (a.rank() == 3) saved.emplace_back("decay", a);
  for (const Block& block : kept.visit.blocks(h.size(0))) {
    kept.visit.show(block, saved, {{"h", steps_of(dh, block)}});
  }
  return {kept.wants_da ? factor_gradient(kept, dh) : Tensor(), dh.transpose(0, 1), dh0};
}

}  // namespace

SequenceResult linear_recurrence(const Variable& a, const Variable& b, const Variable& h0,
                                 const SequenceOptions& options) {
  check_operands(a, b, h0, options);
  if (b.size(1) == 0) return {b, {{"h", h0}}};
  const Breaks breaks = Breaks::of(options);
  const Tensor factors = factors_of(a.value()), start = without_gaps(h0.value());
  Tensor h = b.value().transpose(0, 1).clone(), last(start.shape(), start.dtype());
  dispatch_floating("linear_recurrence", h.dtype(), [&breaks, &factors, &start, &h, &last](auto type) {
    using T = decltype(type);
    kernels::linear_recurrence(breaks.recurrence(h, {0, h.size(0)}), kernel_factors<T>(factors), start.data<T>(),
                               h.mutable_data<T>(), last.mutable_data<T>());
  });
  const RecurrenceKept kept{.breaks = SavedBreaks(breaks),
                            .a = Saved(factors),
                            .h0 = Saved(start),
                            .h = Saved(h),
                            .visit = {options.visitor, options.path},
                            .wants_da = a.requires_grad()};
  const Variables parents{a, b, h0};
  const Variables results = record(Op::linear_recurrence, {h.transpose(0, 1), last}, parents,
                                   [kept](std::span<const Tensor> dys) { return backward(kept, dys); });
  return {results[0], {{"h", results[1]}}};
}

}  // namespace carousel
