#include <carousel/nn/attention_parts.h>

#include <carousel/tensor/dispatch.h>
#include <carousel/tensor/kernels/attention.h>

#include <cmath>

namespace carousel::attention {
namespace {

// The kernel reads along the last axis.
Tensor without_gaps(const Tensor& x) { return x.size(-1) <= 1 || x.strides().back() == 1 ? x : x.contiguous(); }

template <class T>
kernels::Heads<const T> heads(const Tensor& x) {
  return {x.data<T>(), x.strides()[0], x.strides()[1], x.strides()[2]};
}

template <class T>
kernels::Heads<T> mutable_heads(Tensor& x) {
  return {x.mutable_data<T>(), x.strides()[0], x.strides()[1], x.strides()[2]};
}

// Numbers like x [B, A, steps, hd], in memory [B, steps, A, hd].
Tensor heads_inside(const Tensor& x) {
  return Tensor({x.size(0), x.size(2), x.size(1), x.size(3)}, x.dtype()).transpose(1, 2);
}

// Whether the three are slices of one array [B, steps, 3, A, hd].
bool lie_in_one_array(const Tensor& q, const Tensor& k, const Tensor& v) {
  const int64_t size = q.size(1) * q.size(3);
  const auto follows = [size](const Tensor& before, const Tensor& x) {
    return x.storage() == before.storage() && x.shape() == before.shape() && x.strides() == before.strides() &&
           x.offset() == before.offset() + size;
  };
  return follows(q, k) && follows(k, v) && q.strides()[1] == q.size(3) && q.strides()[2] == 3 * size;
}

// Room for the gradients of q, k and v: in one array where those do, so that joining them copies nothing.
InputGradients room_for_gradients(const Tensor& q, const Tensor& k, const Tensor& v) {
  if (!lie_in_one_array(q, k, v)) return {heads_inside(q), heads_inside(k), heads_inside(v)};
  const Tensor all({q.size(0), q.size(2), 3, q.size(1), q.size(3)}, q.dtype());
  const auto part = [&all](int64_t i) { return all.select(2, i).transpose(1, 2); };
  return {part(0), part(1), part(2)};
}

// The masks as the kernel reads them, and what it is told besides numbers.
struct Setting {
  Setting(const Tensor& q, const Tensor& k, const AttentionOptions& options)
      : first(options.first.defined() ? options.first.contiguous() : Tensor()),
        visible(options.visible.defined() ? without_gaps(options.visible) : Tensor()),
        shape{.batch = q.size(0),
              .heads = q.size(1),
              .queries = q.size(2),
              .keys = k.size(2),
              .width = q.size(3),
              .scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(q.size(3)))),
              .causal = options.causal} {
    if (first.defined()) shape.first = first.data<int64_t>();
    if (!visible.defined()) return;
    shape.visible = visible.data<bool>();
    shape.visible_row = visible.strides()[0];
    shape.visible_query = visible.rank() == 3 ? visible.strides()[1] : 0;
  }

  Tensor first, visible;
  kernels::AttentionShape shape;
};

InputGradients gradients(const Tensor& q, const Tensor& k, const Tensor& v, const Outputs& outputs,
                         const AttentionOptions& options, const Tensor& dy) {
  const Tensor incoming = without_gaps(dy), lse = outputs.lse.contiguous();
  const Setting setting(q, k, options);
  InputGradients d = room_for_gradients(q, k, v);
  dispatch_floating("attention", q.dtype(), [&setting, &q, &k, &v, &outputs, &lse, &incoming, &d](auto type) {
    using T = decltype(type);
    const kernels::AttentionResult<T> result{
        .q = heads<T>(q), .k = heads<T>(k), .v = heads<T>(v), .y = heads<T>(outputs.y), .lse = lse.data<T>()};
    kernels::attention_backward(setting.shape, result, heads<T>(incoming), mutable_heads<T>(d.q), mutable_heads<T>(d.k),
                                mutable_heads<T>(d.v));
  });
  return d;
}

}  // namespace

Outputs forward(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  const Tensor queries = without_gaps(q), keys = without_gaps(k), values = without_gaps(v);
  const Setting setting(queries, keys, options);
  Outputs out{.y = heads_inside(q), .lse = Tensor({q.size(0), q.size(1), q.size(2)}, q.dtype())};
  dispatch_floating("attention", q.dtype(), [&setting, &queries, &keys, &values, &out](auto type) {
    using T = decltype(type);
    kernels::attention_forward(setting.shape, heads<T>(queries), heads<T>(keys), heads<T>(values),
                               mutable_heads<T>(out.y), out.lse.mutable_data<T>());
  });
  return out;
}

SavedAttention::SavedAttention(const Tensor& q, const Tensor& k, const Tensor& v, const Outputs& outputs,
                               const AttentionOptions& options)
    : q_(without_gaps(q)),
      k_(without_gaps(k)),
      v_(without_gaps(v)),
      y_(outputs.y),
      lse_(outputs.lse),
      first_(options.first),
      visible_(options.visible),
      plain_{.causal = options.causal, .scale = options.scale} {}

AttentionOptions SavedAttention::options() const {
  AttentionOptions options = plain_;
  options.first = first_.get();
  options.visible = visible_.get();
  return options;
}

Gradients SavedAttention::backward(const Tensor& dy) const {
  const InputGradients d = gradients(q_.get(), k_.get(), v_.get(), {y_.get(), lse_.get()}, options(), dy);
  return {d.q, d.k, d.v};
}

AttentionOptions SavedAttention::options_of_query(int64_t query, int64_t keys) const {
  const Slice one{.start = query, .stop = query + 1}, seen{.stop = keys};
  AttentionOptions of_query = options();
  of_query.causal = false;
  if (of_query.first.defined()) of_query.first = of_query.first.slice(1, one);
  if (!of_query.visible.defined()) return of_query;
  if (of_query.visible.rank() == 3) of_query.visible = of_query.visible.slice(1, one);
  of_query.visible = of_query.visible.slice(-1, seen);
  return of_query;
}

InputGradients SavedAttention::backward_of_query(int64_t query, int64_t keys, const Tensor& dy) const {
  const Slice one{.start = query, .stop = query + 1}, seen{.stop = keys};
  return gradients(q().slice(2, one), k().slice(2, seen), v_.get().slice(2, seen),
                   {y_.get().slice(2, one), lse_.get().slice(2, one)}, options_of_query(query, keys), dy);
}

Tensor SavedAttention::weights_of_query(int64_t query, int64_t keys) const {
  return attention_weights(q().slice(2, {.start = query, .stop = query + 1}), k().slice(2, {.stop = keys}),
                           options_of_query(query, keys));
}

}  // namespace carousel::attention
