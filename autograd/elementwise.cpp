#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/record.h>
#include <carousel/tensor/activations.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/reduce.h>

#include <cmath>
#include <numbers>

namespace carousel {

// ---- two operands: each gradient is summed back over the axes that were broadcast ----

Variable add(const Variable& a, const Variable& b) {
  return record(Op::add, add(a.value(), b.value()), {a, b}, [a = a.shape(), b = b.shape()](const Tensor& dy) {
    return Gradients{sum_to(dy, a), sum_to(dy, b)};
  });
}

Variable sub(const Variable& a, const Variable& b) {
  return record(Op::sub, sub(a.value(), b.value()), {a, b}, [a = a.shape(), b = b.shape()](const Tensor& dy) {
    return Gradients{sum_to(dy, a), sum_to(-dy, b)};
  });
}

Variable mul(const Variable& a, const Variable& b) {
  return record(
      Op::mul, mul(a.value(), b.value()), {a, b},
      [a = Saved(a.value()), b = Saved(b.value()), da = a.requires_grad(), db = b.requires_grad()](const Tensor& dy) {
        return Gradients{da ? sum_to(dy * b.get(), a.get().shape()) : Tensor(),
                         db ? sum_to(dy * a.get(), b.get().shape()) : Tensor()};
      });
}

Variable div(const Variable& a, const Variable& b) {
  Tensor y = div(a.value(), b.value());
  return record(Op::div, y, {a, b},
                [y = Saved(y), b = Saved(b.value()), a = a.shape(), with_b = b.requires_grad()](const Tensor& dy) {
                  const Tensor da = dy / b.get();
                  const Tensor db = with_b ? sum_to(-(da * y.get()), b.get().shape()) : Tensor();  // -(a/b)/b
                  return Gradients{sum_to(da, a), db};
                });
}

Variable pow(const Variable& a, const Variable& b) {
  Tensor y = pow(a.value(), b.value());
  return record(Op::pow, y, {a, b},
                [a = Saved(a.value()), b = Saved(b.value()), y = Saved(y), with_a = a.requires_grad(),
                 with_b = b.requires_grad()](const Tensor& dy) {
                  const Tensor& base = a.get();
                  const Tensor& exponent = b.get();
                  const Tensor zero = Tensor::scalar(0, base.dtype());
                  Tensor da, db;
                  if (with_a) {  // where b = 0 the value is 1 whatever a is, and 0 * inf must not appear
                    da = where(equal(exponent, 0), zero, exponent * pow(base, exponent - 1.0));
                    da = sum_to(dy * da, base.shape());
                  }
                  if (with_b) {
                    db = where(equal(base, 0), zero, y.get() * log(base));
                    db = sum_to(dy * db, exponent.shape());
                  }
                  return Gradients{da, db};
                });
}

Variable pow(const Variable& a, double exponent) {
  return record(Op::pow, pow(a.value(), exponent), {a}, [a = Saved(a.value()), exponent](const Tensor& dy) {
    if (exponent == 0) return Gradients{zeros_like(a.get())};
    return Gradients{dy * (exponent * pow(a.get(), exponent - 1))};
  });
}

namespace {

// The backward of maximum and minimum: to whichever was chosen, half each where they are equal.
Backward choose(const Variable& a, const Variable& b, Tensor (*beats)(const Tensor&, const Tensor&)) {
  return [a = Saved(a.value()), b = Saved(b.value()), beats](const Tensor& dy) {
    const Tensor zero = Tensor::scalar(0, dy.dtype());
    const Tensor shared = where(equal(a.get(), b.get()), dy * 0.5, zero);
    const Tensor da = where(beats(a.get(), b.get()), dy, shared);
    const Tensor db = where(beats(b.get(), a.get()), dy, shared);
    return Gradients{sum_to(da, a.get().shape()), sum_to(db, b.get().shape())};
  };
}

}  // namespace

Variable maximum(const Variable& a, const Variable& b) {
  return record(Op::maximum, maximum(a.value(), b.value()), {a, b}, choose(a, b, greater));
}

Variable minimum(const Variable& a, const Variable& b) {
  return record(Op::minimum, minimum(a.value(), b.value()), {a, b}, choose(a, b, less));
}

Variable clamp(const Variable& x, double low, double high) {
  return record(Op::clamp, clamp(x.value(), low, high), {x}, [x = Saved(x.value()), low, high](const Tensor& dy) {
    const Tensor outside = logical_or(less(x.get(), low), greater(x.get(), high));
    return Gradients{where(outside, Tensor::scalar(0, dy.dtype()), dy)};
  });
}

Variable where(const Tensor& condition, const Variable& a, const Variable& b) {
  return record(
      Op::where, where(condition, a.value(), b.value()), {a, b},
      [condition = Saved(condition), a = a.shape(), b = b.shape()](const Tensor& dy) {
        const Tensor zero = Tensor::scalar(0, dy.dtype());
        return Gradients{sum_to(where(condition.get(), dy, zero), a), sum_to(where(condition.get(), zero, dy), b)};
      });
}

// ---- operators ----

Variable operator+(const Variable& a, const Variable& b) { return add(a, b); }
Variable operator-(const Variable& a, const Variable& b) { return sub(a, b); }
Variable operator*(const Variable& a, const Variable& b) { return mul(a, b); }
Variable operator/(const Variable& a, const Variable& b) { return div(a, b); }

Variable operator+(const Variable& a, double b) {
  return record(Op::add, a.value() + b, {a}, [](const Tensor& dy) { return Gradients{dy}; });
}
Variable operator*(const Variable& a, double b) {
  return record(Op::mul, a.value() * b, {a}, [b](const Tensor& dy) { return Gradients{dy * b}; });
}
Variable operator-(double a, const Variable& b) {
  return record(Op::sub, a - b.value(), {b}, [](const Tensor& dy) { return Gradients{-dy}; });
}
Variable operator/(double a, const Variable& b) {
  Tensor y = a / b.value();
  return record(Op::div, y, {b}, [y = Saved(y), b = Saved(b.value())](const Tensor& dy) {
    return Gradients{-(dy * y.get() / b.get())};
  });
}
Variable operator/(const Variable& a, double b) {
  return record(Op::div, a.value() / b, {a}, [b](const Tensor& dy) { return Gradients{dy / b}; });
}
Variable operator-(const Variable& a, double b) { return a + -b; }
Variable operator+(double a, const Variable& b) { return b + a; }
Variable operator*(double a, const Variable& b) { return b * a; }
Variable operator-(const Variable& x) { return neg(x); }

// ---- one operand ----

Variable neg(const Variable& x) {
  return record(Op::neg, -x.value(), {x}, [](const Tensor& dy) { return Gradients{-dy}; });
}

Variable abs(const Variable& x) {
  return record(Op::abs, abs(x.value()), {x},
                [x = Saved(x.value())](const Tensor& dy) { return Gradients{dy * sign(x.get())}; });
}

Variable square(const Variable& x) {
  return record(Op::square, square(x.value()), {x},
                [x = Saved(x.value())](const Tensor& dy) { return Gradients{dy * (2.0 * x.get())}; });
}

Variable reciprocal(const Variable& x) {
  Tensor y = reciprocal(x.value());
  return record(Op::reciprocal, y, {x}, [y = Saved(y)](const Tensor& dy) {
    return Gradients{-(dy * square(y.get()))};  // d(1/x) = -1/x^2
  });
}

Variable exp(const Variable& x) {
  Tensor y = exp(x.value());
  return record(Op::exp, y, {x}, [y = Saved(y)](const Tensor& dy) { return Gradients{dy * y.get()}; });
}

Variable expm1(const Variable& x) {
  Tensor y = expm1(x.value());
  return record(Op::expm1, y, {x}, [y = Saved(y)](const Tensor& dy) { return Gradients{dy * (y.get() + 1.0)}; });
}

Variable log(const Variable& x) {
  return record(Op::log, log(x.value()), {x},
                [x = Saved(x.value())](const Tensor& dy) { return Gradients{dy / x.get()}; });
}

Variable log1p(const Variable& x) {
  return record(Op::log1p, log1p(x.value()), {x},
                [x = Saved(x.value())](const Tensor& dy) { return Gradients{dy / (x.get() + 1.0)}; });
}

Variable sqrt(const Variable& x) {
  Tensor y = sqrt(x.value());
  return record(Op::sqrt, y, {x}, [y = Saved(y)](const Tensor& dy) { return Gradients{dy / (2.0 * y.get())}; });
}

Variable rsqrt(const Variable& x) {
  Tensor y = rsqrt(x.value());
  return record(Op::rsqrt, y, {x}, [y = Saved(y)](const Tensor& dy) {
    return Gradients{dy * (-0.5 * (square(y.get()) * y.get()))};  // d x^(-1/2) = -1/2 x^(-3/2)
  });
}

Variable sin(const Variable& x) {
  return record(Op::sin, sin(x.value()), {x},
                [x = Saved(x.value())](const Tensor& dy) { return Gradients{dy * cos(x.get())}; });
}

Variable cos(const Variable& x) {
  return record(Op::cos, cos(x.value()), {x},
                [x = Saved(x.value())](const Tensor& dy) { return Gradients{-(dy * sin(x.get()))}; });
}

Variable tanh(const Variable& x) {
  Tensor y = tanh(x.value());
  return record(Op::tanh, y, {x}, [y = Saved(y)](const Tensor& dy) {
    return Gradients{dy * (1.0 - square(y.get()))};  // d tanh = 1 - tanh^2
  });
}

Variable sigmoid(const Variable& x) {
  Tensor y = sigmoid(x.value());
  return record(Op::sigmoid, y, {x},
                [y = Saved(y)](const Tensor& dy) { return Gradients{dy * (y.get() * (1.0 - y.get()))}; });
}

Variable softplus(const Variable& x) {
  return record(Op::softplus, softplus(x.value()), {x},
                [x = Saved(x.value())](const Tensor& dy) { return Gradients{softplus_backward(x.get(), dy)}; });
}

Variable relu(const Variable& x) {
  Tensor y = relu(x.value());
  return record(Op::relu, y, {x}, [y = Saved(y)](const Tensor& dy) {
    return Gradients{where(greater(y.get(), 0), dy, Tensor::scalar(0, dy.dtype()))};
  });
}

Variable silu(const Variable& x) {
  return record(Op::silu, silu(x.value()), {x},
                [x = Saved(x.value())](const Tensor& dy) { return Gradients{silu_backward(x.get(), dy)}; });
}

Variable gelu(const Variable& x) {
  return record(
      Op::gelu, gelu(x.value()), {x},
      [x = Saved(x.value())](const Tensor& dy) { return Gradients{gelu_backward(x.get(), dy)}; },
      [x = Saved(x.value())] { return gelu(x.get()); });
}

Variable erf(const Variable& x) {
  return record(Op::erf, erf(x.value()), {x}, [x = Saved(x.value())](const Tensor& dy) {
    return Gradients{dy * (2 / std::sqrt(std::numbers::pi) * exp(-square(x.get())))};
  });
}

// ---- several in one pass ----

Variable silu_gate(const Variable& y, const Variable& z) {
  return record(
      Op::silu_gate, silu_gate(y.value(), z.value()), {y, z},
      [y = Saved(y.value()), z = Saved(z.value())](const Tensor& dout) {
        auto [dy, dz] = silu_gate_backward(y.get(), z.get(), dout);
        return Gradients{dy, dz};
      },
      [y = Saved(y.value()), z = Saved(z.value())] { return silu_gate(y.get(), z.get()); });
}

}  // namespace carousel
