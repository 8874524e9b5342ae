#include <carousel/nn/selective_scan.h>

#include <carousel/autograd/record.h>
#include <carousel/nn/recurrent.h>
#include <carousel/tensor/dispatch.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/kernels/selective_scan.h>

namespace carousel {
namespace {

using namespace recurrent;  // NOLINT: time-major sequences and their breaks

void check_shape(std::string_view name, const Variable& x, const Shape& shape) {
  check<ShapeError>(x.shape() == shape, "selective_scan", "{} must have shape {}: got {}", name, to_string(shape),
                    to_string(x.shape()));
}

void check_scan(const ScanTerms& terms, const Variable& h0, const SequenceOptions& options) {
  check<ShapeError>(terms.u.rank() == 3, "selective_scan", "u must be [B, T, I]: got {}", to_string(terms.u.shape()));
  const int64_t batch = terms.u.size(0), steps = terms.u.size(1), channels = terms.u.size(2);
  check<ShapeError>(terms.a.rank() == 2 && terms.a.size(0) == channels, "selective_scan",
                    "A must be [I, N] with I = {}: got {}", channels, to_string(terms.a.shape()));
  const int64_t states = terms.a.size(1);
  check_shape("dt", terms.dt, terms.u.shape());
  check_shape("B", terms.b, terms.b.rank() == 2 ? Shape{channels, states} : Shape{batch, steps, states});
  check_shape("C", terms.c, terms.b.shape());
  check_shape("D", terms.d, {channels});
  check_shape("h0", h0, {batch, channels, states});
  for (const Variable* other : {&terms.dt, &terms.a, &terms.b, &terms.c, &terms.d, &h0}) {
    check<ValueError>(other->dtype() == terms.u.dtype(), "selective_scan", "all must have the dtype of u, {}: got {}",
                      to_string(terms.u.dtype()), to_string(other->dtype()));
  }
  check_options("selective_scan", batch, steps, options);
}

// What the kernels read, without gaps; sequences are time-major.
struct Inputs {
  Tensor u, dt, a, b, c, d;
  Breaks breaks;

  bool fixed() const { return b.rank() == 2; }

  // Steps first .. last - 1.
  kernels::ScanShape shape(int64_t first, int64_t last) const {
    return {breaks.shape(u, {first, last - first}), u.size(2), a.size(1), fixed()};
  }
  template <class T>
  kernels::ScanInputs<T> from(int64_t first) const {
    const int64_t wide = first * u.size(1) * u.size(2), narrow = fixed() ? 0 : first * u.size(1) * a.size(1);
    return {.u = u.data<T>() + wide,
            .dt = dt.data<T>() + wide,
            .a = a.data<T>(),
            .b = b.data<T>() + narrow,
            .c = c.data<T>() + narrow,
            .d = d.data<T>()};
  }
};

struct Outputs {
  Tensor y;     // [T, B, I]
  Tensor last;  // [B, I, N]
  Tensor kept;  // [blocks, B, N, I], undefined when there will be no backward
};

Outputs run_forward(const Inputs& in, const Tensor& h0, bool keep) {
  const kernels::ScanShape shape = in.shape(0, in.u.size(0));
  const DType dtype = in.u.dtype();
  Outputs out{.y = Tensor(in.u.shape(), dtype),
              .last = Tensor(h0.shape(), dtype),
              .kept = keep ? Tensor({shape.blocks(), shape.batch, shape.states, shape.channels}, dtype) : Tensor()};
  dispatch_floating("selective_scan", dtype, [&shape, &in, &h0, &out](auto type) {
    using T = decltype(type);
    kernels::selective_scan(shape, in.from<T>(0), h0.data<T>(), out.y.mutable_data<T>(), out.last.mutable_data<T>(),
                            out.kept.defined() ? out.kept.mutable_data<T>() : nullptr);
  });
  return out;
}

// What backward has gathered on its way to the first step.
struct Gathered {
  Tensor du, ddt, db, dc;  // of the steps behind it; where B and C are fixed, sums over them
  Tensor da, dd;           // sums over them
  Tensor dh;               // of the state that it has come to; undefined: zeros
};

void show(const Inputs& in, int64_t first, int64_t last, const Tensor& dh, const Visit& visit) {
  const auto block = [first, last](const Tensor& x) { return x.slice(0, {.start = first, .stop = last}); };
  const auto coefficients = [&in, &dh, &block](const Tensor& x) {
    return in.fixed() ? x.expand(dh.shape()) : block(x);
  };
  const Tensor dt = block(in.dt);
  visit.visitor({.layer = visit.layer,
                 .first_step = first,
                 .saved = {{"u", block(in.u)},
                           {"dt", dt},
                           {"decay", exp(dt.unsqueeze(-1) * in.a)},
                           {"B", coefficients(in.b)},
                           {"C", coefficients(in.c)}},
                 .gradient = {{"h", dh}}});
}

// Steps first .. last - 1.
template <class T>
void run_block(const Inputs& in, const Tensor& kept, const Tensor& dy, int64_t first, int64_t last, const Visit& visit,
               Gathered& sums) {
  const kernels::ScanShape shape = in.shape(first, last);
  const DType dtype = dy.dtype();
  const int64_t wide = first * shape.batch * shape.channels;
  const int64_t narrow = in.fixed() ? 0 : first * shape.batch * shape.states;
  Tensor da(in.a.shape(), dtype), dd(in.d.shape(), dtype), before({shape.batch, shape.channels, shape.states}, dtype);
  Tensor db = in.fixed() ? Tensor(in.b.shape(), dtype) : sums.db,
         dc = in.fixed() ? Tensor(in.c.shape(), dtype) : sums.dc;
  Tensor dh;
  if (visit.visitor) dh = Tensor({shape.steps, shape.batch, shape.channels, shape.states}, dtype);
  kernels::selective_scan_backward<T>(shape, in.from<T>(first),
                                      kept.data<T>() + first / kernels::scan_block * before.numel(),
                                      dy.data<T>() + wide, sums.dh.defined() ? sums.dh.data<T>() : nullptr,
                                      {.u = sums.du.mutable_data<T>() + wide,
                                       .dt = sums.ddt.mutable_data<T>() + wide,
                                       .a = da.mutable_data<T>(),
                                       .b = db.mutable_data<T>() + narrow,
                                       .c = dc.mutable_data<T>() + narrow,
                                       .d = dd.mutable_data<T>(),
                                       .h0 = before.mutable_data<T>(),
                                       .dh = dh.defined() ? dh.mutable_data<T>() : nullptr});
  add_(sums.da, da);
  add_(sums.dd, dd);
  if (in.fixed()) {
    add_(sums.db, db);
    add_(sums.dc, dc);
  }
  sums.dh = before;
  if (visit.visitor) show(in, first, last, dh, visit);
}

// The gradients of u, dt, A, B, C, D and h0.
Gradients backward(const Inputs& in, const Tensor& kept, std::span<const Tensor> dys, const Visit& visit) {
  const Tensor dy = dys[0].defined() ? time_major(dys[0]) : zeros_like(in.u);
  Gathered sums{.du = Tensor(in.u.shape(), in.u.dtype()),
                .ddt = Tensor(in.u.shape(), in.u.dtype()),
                .db = zeros_like(in.b),
                .dc = zeros_like(in.c),
                .da = zeros_like(in.a),
                .dd = zeros_like(in.d),
                .dh = dys[1].defined() ? dys[1].contiguous() : dys[1]};
  const auto run = in.u.dtype() == DType::float32 ? run_block<float> : run_block<double>;
  static_assert(visited_steps % kernels::scan_block == 0);
  for (const auto& [first, steps] : visit.blocks(in.u.size(0))) {
    run(in, kept, dy, first, first + steps, visit, sums);
  }
  const auto rows_first = [&in](const Tensor& x) { return in.fixed() ? x : x.transpose(0, 1); };
  return {sums.du.transpose(0, 1),
          sums.ddt.transpose(0, 1),
          sums.da,
          rows_first(sums.db),
          rows_first(sums.dc),
          sums.dd,
          sums.dh};
}

// The inputs for backward, which refuses to run when one was changed in place since.
class SavedInputs {
 public:
  explicit SavedInputs(const Inputs& in)
      : u_(in.u), dt_(in.dt), a_(in.a), b_(in.b), c_(in.c), d_(in.d), breaks_(in.breaks) {}
  Inputs get() const { return {u_.get(), dt_.get(), a_.get(), b_.get(), c_.get(), d_.get(), breaks_.get()}; }

 private:
  Saved u_, dt_, a_, b_, c_, d_;
  SavedBreaks breaks_;
};

}  // namespace

ScanResult selective_scan(const ScanTerms& terms, const Variable& h0, const SequenceOptions& options) {
  check_scan(terms, h0, options);
  const bool fixed = terms.b.rank() == 2;
  const auto coefficients = [fixed](const Variable& x) {
    return fixed ? x.value().contiguous() : time_major(x.value());
  };
  const Inputs in{.u = time_major(terms.u.value()),
                  .dt = time_major(terms.dt.value()),
                  .a = terms.a.value().contiguous(),
                  .b = coefficients(terms.b),
                  .c = coefficients(terms.c),
                  .d = terms.d.value().contiguous(),
                  .breaks = Breaks::of(options)};
  const Variables parents{terms.u, terms.dt, terms.a, terms.b, terms.c, terms.d, h0};
  const Outputs out = run_forward(in, h0.value().contiguous(), needs_grad(parents));
  const Variables results =
      record(Op::selective_scan, {out.y.transpose(0, 1), out.last}, parents,
             [inputs = SavedInputs(in), kept = Saved(out.kept), visit = Visit{options.visitor, options.path}](
                 std::span<const Tensor> dys) { return backward(inputs.get(), kept.get(), dys, visit); });
  return {.output = results[0], .state = results[1]};
}

}  // namespace carousel
