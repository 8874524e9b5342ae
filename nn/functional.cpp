#include <carousel/nn/functional.h>

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/record.h>
#include <carousel/autograd/reduce.h>
#include <carousel/tensor/dispatch.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/kernels/dropout.h>
#include <carousel/tensor/kernels/layer_norm.h>
#include <carousel/tensor/kernels/softmax_cross_entropy.h>
#include <carousel/tensor/random.h>
#include <carousel/tensor/reduce.h>
#include <carousel/tensor/rows.h>

#include <algorithm>
#include <cmath>

namespace carousel {
namespace {

// ---- dropout ----

// x [B, T, H] dropped and scaled, laid out time-major. The mask depends on nothing but its arguments, so backward makes
// it again instead of keeping it.
Tensor drop(const Tensor& x, const kernels::DropoutMask& mask) {
  const Tensor in = x.strides().back() == 1 ? x : x.contiguous();
  Tensor out({x.size(1), x.size(0), x.size(2)}, x.dtype());
  dispatch_floating("dropout", x.dtype(), [&mask, &x, &in, &out](auto type) {
    using T = decltype(type);
    kernels::dropout(mask, x.size(1), x.size(0), x.size(2), in.data<T>(),
                     {.step_stride = in.strides()[1], .row_stride = in.strides()[0]}, out.mutable_data<T>(),
                     {.step_stride = out.strides()[0], .row_stride = out.strides()[1]});
  });
  return out.transpose(0, 1);
}

// `sequence` is x's shape seen as [B, T, H].
Variable dropped(const Variable& x, const Shape& sequence, const kernels::DropoutMask& mask) {
  check<ValueError>(mask.probability >= 0 && mask.probability < 1, "dropout", "probability must be in [0, 1): got {}",
                    mask.probability);
  const Tensor y = drop(x.value().reshape(sequence), mask).reshape(x.shape());
  return record(Op::dropout, y, {x}, [sequence, mask](const Tensor& dy) {
    return Gradients{drop(dy.reshape(sequence), mask).reshape(dy.shape())};
  });
}

// ---- layer norm ----

void check_normalised(std::string_view operation, const Variable& x, std::string_view name, const Variable& parameter,
                      double eps) {
  check<ShapeError>(x.rank() >= 1 && parameter.shape() == Shape{x.size(-1)}, operation,
                    "{} must have the last size of x: got {} and {}", name, to_string(parameter.shape()),
                    to_string(x.shape()));
  check<ValueError>(parameter.dtype() == x.dtype(), operation, "{} must have the dtype of x: got {} and {}", name,
                    to_string(parameter.dtype()), to_string(x.dtype()));
  check<ValueError>(std::isfinite(eps) && eps > 0, operation, "eps must be finite and > 0: got {}", eps);
}

struct NormalisedRows {
  Tensor x, gain;      // [rows, D], [D]: what went in
  Tensor y;            // [rows, D]
  Tensor mean, scale;  // [rows]; scale = 1 / sqrt(variance + eps)
};

// How rows are normalised: `eps`, and whether their mean is taken off.
struct Normalisation {
  double eps;
  bool centered;
  kernels::LayerNormShape of(const Tensor& rows) const { return {rows.size(0), rows.size(1), eps, centered}; }
};

NormalisedRows normalise(const Normalisation& how, const Tensor& x, const Tensor& gain, const Tensor& shift) {
  const kernels::LayerNormShape shape = how.of(x);
  NormalisedRows rows{.x = x,
                      .gain = gain,
                      .y = Tensor(x.shape(), x.dtype()),
                      .mean = Tensor({shape.rows}, x.dtype()),
                      .scale = Tensor({shape.rows}, x.dtype())};
  dispatch_floating("layer_norm", x.dtype(), [&shape, &shift, &rows](auto type) {
    using T = decltype(type);
    kernels::layer_norm(shape, rows.x.data<T>(), rows.gain.data<T>(), shift.data<T>(), rows.y.mutable_data<T>(),
                        rows.mean.mutable_data<T>(), rows.scale.mutable_data<T>());
  });
  return rows;
}

// The gradients of x, weight and bias.
Gradients normalise_backward(const Normalisation& how, const NormalisedRows& rows, const Tensor& dy) {
  const kernels::LayerNormShape shape = how.of(dy);
  Tensor dx(dy.shape(), dy.dtype()), dweight({shape.size}, dy.dtype()), dbias({shape.size}, dy.dtype());
  dispatch_floating("layer_norm", dy.dtype(), [&shape, &rows, &dy, &dx, &dweight, &dbias](auto type) {
    using T = decltype(type);
    kernels::layer_norm_backward(shape, rows.x.data<T>(), rows.gain.data<T>(), rows.mean.data<T>(),
                                 rows.scale.data<T>(), dy.data<T>(), dx.mutable_data<T>(), dweight.mutable_data<T>(),
                                 dbias.mutable_data<T>());
  });
  return {dx, dweight, dbias};
}

// `inputs` are x, the gain, and for layer norm the shift, which `shift` holds without gaps (zeros for RMS norm).
Variable normalised(Op op, const Normalisation& how, std::span<const Variable> inputs, const Tensor& shift) {
  const RowOrder order(inputs[0].value());
  const NormalisedRows rows =
      normalise(how, order.rows(inputs[0].value()).contiguous(), inputs[1].value().contiguous(), shift);
  return record(
      op, order.restore(rows.y), inputs,
      [order, how, count = inputs.size(), rows = Saved(rows.x), gain = Saved(rows.gain), mean = Saved(rows.mean),
       scale = Saved(rows.scale)](const Tensor& dy) {
        Gradients gradients = normalise_backward(
            how, {.x = rows.get(), .gain = gain.get(), .y = {}, .mean = mean.get(), .scale = scale.get()},
            order.rows(dy).contiguous());
        gradients[0] = order.restore(gradients[0].value());
        gradients.resize(count);
        return gradients;
      },
      [order, how, rows = Saved(rows.x), gain = Saved(rows.gain), shift = Saved(shift)] {
        return order.restore(normalise(how, rows.get(), gain.get(), shift.get()).y);
      });
}

// ---- cross entropy ----

void check_shapes(const Variable& logits, const Tensor& targets) {
  check<ShapeError>(logits.rank() >= 1, "cross_entropy", "logits must be [.., V]: got {}", to_string(logits.shape()));
  Shape leading = logits.shape();
  leading.erase(leading.rank() - 1);
  check<ShapeError>(targets.shape() == leading, "cross_entropy",
                    "targets must have the shape of logits without V: got {} and {}", to_string(targets.shape()),
                    to_string(logits.shape()));
  check<ValueError>(targets.dtype() == DType::int64, "cross_entropy", "targets must be int64: got {}",
                    to_string(targets.dtype()));
}

// How many targets count; throws for one outside the classes.
int64_t count_targets(const Tensor& targets, int64_t classes, const std::optional<int64_t>& ignore) {
  const int64_t* target = targets.data<int64_t>();
  int64_t counted = 0;
  for (int64_t i = 0; i < targets.numel(); ++i) {
    if (target[i] == ignore) continue;
    check<IndexError>(target[i] >= 0 && target[i] < classes, "cross_entropy", "targets must be in [0, {}): got {}",
                      classes, target[i]);
    ++counted;
  }
  return counted;
}

// Rows of logits against their targets, in the order in which the logits lie in memory.
struct Scores {
  Scores(const Variable& logits, const Tensor& given, const CrossEntropyOptions& options)
      : order(logits.value()), ignore(options.ignore_index) {
    check_shapes(logits, given);
    const int64_t classes = logits.size(-1);
    targets = order.column(given).contiguous();
    counted = count_targets(targets, classes, ignore);
    const Tensor rows = order.rows(logits.value()).contiguous();
    losses = Tensor({rows.size(0)}, rows.dtype());
    softmax = Tensor(rows.shape(), rows.dtype());
    dispatch_floating("cross_entropy", rows.dtype(), [this, &rows, classes](auto type) {
      using T = decltype(type);
      kernels::softmax_cross_entropy(rows.size(0), classes, rows.data<T>(), targets.data<int64_t>(), ignore,
                                     losses.mutable_data<T>(), softmax.mutable_data<T>());
    });
  }

  RowOrder order;
  std::optional<int64_t> ignore;
  Tensor targets;
  int64_t counted;
  Tensor losses;   // [rows]
  Tensor softmax;  // [rows, V]
};

// (softmax - one_hot(target)) dloss, row by row, dloss [rows].
Tensor logits_gradient(const Tensor& softmax, const Tensor& targets, const std::optional<int64_t>& ignore,
                       const Tensor& dloss) {
  Tensor dlogits(softmax.shape(), softmax.dtype());
  dispatch_floating("cross_entropy", softmax.dtype(), [&softmax, &targets, &ignore, &dloss, &dlogits](auto type) {
    using T = decltype(type);
    kernels::softmax_cross_entropy_backward(softmax.size(0), softmax.size(1), softmax.data<T>(),
                                            targets.data<int64_t>(), ignore, dloss.data<T>(),
                                            dlogits.mutable_data<T>());
  });
  return dlogits;
}

}  // namespace

Variable sequence_dropout(const Variable& x, double probability, uint64_t key, int64_t first_step) {
  check<ShapeError>(x.rank() == 2 || x.rank() == 3, "sequence_dropout", "x must be [B, H] or [B, T, H]: got {}",
                    to_string(x.shape()));
  const int64_t steps = x.rank() == 3 ? x.size(1) : 1;
  return dropped(x, {x.size(0), steps, x.size(-1)}, {probability, key, first_step});
}

Variable dropout(const Variable& x, double probability, uint64_t key) {
  const int64_t features = x.rank() > 0 ? x.size(-1) : 1;
  const int64_t rows = features > 0 ? x.value().numel() / features : 0;
  return dropped(x, {rows, 1, features}, {probability, key, 0});
}

bool drops(const Module& module, double probability, const std::optional<uint64_t>& key) {
  return module.training() && key && probability > 0;
}

Variable dropout_in_training(const Module& module, const Variable& x, double probability,
                             const std::optional<uint64_t>& key, int64_t first_step) {
  return drops(module, probability, key) ? sequence_dropout(x, probability, *key, first_step) : x;
}

std::optional<uint64_t> derived_key(const std::optional<uint64_t>& key, uint64_t use) {
  if (!key) return key;
  const auto block = Rng::block(*key, use);
  return (uint64_t{block[0]} << 32) | block[1];
}

Variable layer_norm(const Variable& x, const Variable& weight, const Variable& bias, double eps) {
  check_normalised("layer_norm", x, "weight", weight, eps);
  check_normalised("layer_norm", x, "bias", bias, eps);
  const Variables inputs{x, weight, bias};
  return normalised(Op::layer_norm, {.eps = eps, .centered = true}, inputs, bias.value().contiguous());
}

Variable rms_norm(const Variable& x, const Variable& weight, double eps) {
  check_normalised("rms_norm", x, "weight", weight, eps);
  const Variables inputs{x, weight};
  return normalised(Op::rms_norm, {.eps = eps, .centered = false}, inputs, zeros(weight.shape(), weight.dtype()));
}

Variable cross_entropy(const Variable& logits, const Tensor& targets, const CrossEntropyOptions& options) {
  const Scores scores(logits, targets, options);
  const auto count = static_cast<double>(std::max<int64_t>(1, scores.counted));  // nothing counted: 0 / 1
  return record(Op::cross_entropy, sum(scores.losses) / count, {logits},
                [order = scores.order, softmax = Saved(scores.softmax), targets = Saved(scores.targets),
                 ignore = scores.ignore, count](const Tensor& dy) {
                  const Tensor dloss = full(targets.get().shape(), dy.item() / count, dy.dtype());
                  return Gradients{order.restore(logits_gradient(softmax.get(), targets.get(), ignore, dloss))};
                });
}

Variable cross_entropy_per_position(const Variable& logits, const Tensor& targets, const CrossEntropyOptions& options) {
  const Scores scores(logits, targets, options);
  return record(Op::cross_entropy, scores.order.restore_column(scores.losses), {logits},
                [order = scores.order, softmax = Saved(scores.softmax), targets = Saved(scores.targets),
                 ignore = scores.ignore](const Tensor& dy) {
                  const Tensor dloss = order.column(dy).contiguous();
                  return Gradients{order.restore(logits_gradient(softmax.get(), targets.get(), ignore, dloss))};
                });
}

Variable mse(const Variable& prediction, const Variable& target) {
  check<ShapeError>(prediction.shape() == target.shape(), "mse",
                    "prediction and target must have one shape: got {} and {}", to_string(prediction.shape()),
                    to_string(target.shape()));
  const Variable squares = square(prediction - target);
  return squares.value().numel() == 0 ? sum(squares) : mean(squares);
}

}  // namespace carousel
