#include <carousel/nn/watched_attention.h>

#include <carousel/autograd/elementwise.h>
#include <carousel/nn/attention_parts.h>
#include <carousel/nn/recurrent.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>

namespace carousel::attention {
namespace {

using recurrent::Visit;

// [B, S] over [B, A, S, hd].
Tensor over_entries(const Tensor& mask) { return mask.unsqueeze(1).unsqueeze(-1); }

// Where the rows are cut and where they end, read off the first entry that each step may look at.
class Cuts {
 public:
  Cuts(const Tensor& first, int64_t steps, int64_t entries)
      : first_(first.defined() ? first.to_vector<int64_t>() : std::vector<int64_t>()),
        rows_(first.defined() ? first.size(0) : 0),
        steps_(steps),
        entries_(entries) {}

  // Zeroes what the steps behind a row's end would have put into the state.
  void drop_unused(Tensor& gradient) const {
    for_each([this, &gradient](int64_t row, int64_t t, int64_t first) {
      if (first == entries_) gradient.select(0, row).select(1, entry(t)).fill_(0);
    });
  }

  // As it is shown after step t: rows that had ended made no state then.
  Tensor shown(int64_t t, const Tensor& gradient) const {
    Tensor shown = gradient;
    bool copied = false;
    for (int64_t row = 0; row < rows_; ++row) {
      if (at(row, t) != entries_) continue;
      if (!copied) shown = gradient.clone();
      copied = true;
      shown.select(0, row).fill_(0);
    }
    return shown.unsqueeze(0);
  }

  // No gradient goes to what a row was cut from before step t.
  void cut(int64_t t, Tensor& gradient) const {
    for (int64_t row = 0; row < rows_; ++row) {
      if (at(row, t) == entry(t)) gradient.select(0, row).slice(1, {.stop = entry(t)}).fill_(0);
    }
  }

 private:
  int64_t at(int64_t row, int64_t t) const { return first_[static_cast<size_t>(row * steps_ + t)]; }
  int64_t entry(int64_t t) const { return entries_ - steps_ + t; }

  template <class Body>
  void for_each(const Body& body) const {
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t t = 0; t < steps_; ++t) body(row, t, at(row, t));
    }
  }

  std::vector<int64_t> first_;
  int64_t rows_, steps_, entries_;
};

// The gradient that arrives at the final state, in memory of its own, to which the steps add theirs.
Tensor running(const Tensor& arrived, const Tensor& like) {
  return arrived.defined() ? arrived.clone() : zeros_like(like);
}

// From the last query to the first.
Gradients walk(const SavedAttention& saved, const Visit& visit, std::span<const Tensor> dys) {
  const Tensor &q = saved.q(), &k = saved.k();
  const int64_t steps = q.size(2), entries = k.size(2);
  const Cuts cuts(saved.options().first, steps, entries);
  const Tensor dy = dys[0].defined() ? dys[0] : zeros_like(q);
  Tensor dq = zeros_like(q), dkeys = running(dys[1], k), dvalues = running(dys[2], k);
  cuts.drop_unused(dkeys);
  cuts.drop_unused(dvalues);
  for (int64_t t = steps - 1; t >= 0; --t) {
    const int64_t held = entries - steps + t + 1;
    const Slice one{.start = t, .stop = t + 1}, past{.stop = held};
    const attention::InputGradients gradients = saved.backward_of_query(t, held, dy.slice(2, one));
    dq.slice(2, one).copy_(gradients.q);
    Tensor dk = dkeys.slice(2, past), dv = dvalues.slice(2, past);
    add_(dk, gradients.k);
    add_(dv, gradients.v);
    visit.visitor({.layer = visit.layer,
                   .first_step = t,
                   .saved = {{"weights", saved.weights_of_query(t, held).squeeze(2).unsqueeze(0)}},
                   .gradient = {{"keys", cuts.shown(t, dk)}, {"values", cuts.shown(t, dv)}}});
    cuts.cut(t, dkeys);
    cuts.cut(t, dvalues);
  }
  return {dq, dkeys, dvalues};
}

}  // namespace

Variable keep_entries(const Variable& x, const Tensor& kept) {
  return kept.defined() ? where(over_entries(kept), x, Variable(zeros({}, x.dtype()))) : x;
}

Results watched(const Variable& q, const Variable& keys, const Variable& values, const AttentionOptions& seen,
                const Tensor& kept, const SequenceOptions& options) {
  const Outputs out = forward(q.value(), keys.value(), values.value(), seen);
  const Variables parents{q, keys, values};
  const Variables results = record(
      Op::attention, {out.y, keep_entries(keys.detach(), kept).value(), keep_entries(values.detach(), kept).value()},
      parents,
      [saved = SavedAttention(q.value(), keys.value(), values.value(), out, seen),
       visit = Visit{options.visitor, options.path}](std::span<const Tensor> dys) { return walk(saved, visit, dys); });
  return {results[0], results[1], results[2]};
}

}  // namespace carousel::attention
