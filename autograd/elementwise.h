#pragma once

#include <carousel/autograd/variable.h>

/// Differentiable forms of tensor/elementwise.h, with the same names, shapes and errors (ShapeError unless two shapes
/// broadcast, ValueError unless the dtypes agree). The gradient of a broadcast operand is summed back to its own shape.
/// A double stands for a constant scalar.
namespace carousel {

// Of two operands: mul, pow, maximum, minimum save both; div saves b and the result; where saves the condition; add and
// sub save nothing.

Variable add(const Variable& a, const Variable& b);
Variable sub(const Variable& a, const Variable& b);
Variable mul(const Variable& a, const Variable& b);
Variable div(const Variable& a, const Variable& b);
Variable pow(const Variable& a, const Variable& b);  ///< d/db needs a > 0; where a = 0 it is 0
Variable pow(const Variable& a, double exponent);
Variable maximum(const Variable& a, const Variable& b);  ///< equal values share the gradient, half each
Variable minimum(const Variable& a, const Variable& b);
Variable clamp(const Variable& x, double low, double high);  ///< gradient 1 inside and on the bounds, else 0
Variable where(const Tensor& condition, const Variable& a, const Variable& b);

Variable operator+(const Variable& a, const Variable& b);
Variable operator-(const Variable& a, const Variable& b);
Variable operator*(const Variable& a, const Variable& b);
Variable operator/(const Variable& a, const Variable& b);
Variable operator+(const Variable& a, double b);
Variable operator-(const Variable& a, double b);
Variable operator*(const Variable& a, double b);
Variable operator/(const Variable& a, double b);
Variable operator+(double a, const Variable& b);
Variable operator-(double a, const Variable& b);
Variable operator*(double a, const Variable& b);
Variable operator/(double a, const Variable& b);
Variable operator-(const Variable& x);

// Of one operand: reciprocal, exp, expm1, sqrt, rsqrt, tanh, sigmoid, relu save the result; neg nothing; the others x.
Variable neg(const Variable& x);
Variable abs(const Variable& x);  ///< gradient 0 at 0
Variable square(const Variable& x);
Variable reciprocal(const Variable& x);
Variable exp(const Variable& x);
Variable expm1(const Variable& x);
Variable log(const Variable& x);
Variable log1p(const Variable& x);
Variable sqrt(const Variable& x);
Variable rsqrt(const Variable& x);
Variable sin(const Variable& x);
Variable cos(const Variable& x);
Variable tanh(const Variable& x);
Variable sigmoid(const Variable& x);
Variable softplus(const Variable& x);
Variable relu(const Variable& x);  ///< gradient 0 at 0
Variable silu(const Variable& x);
Variable gelu(const Variable& x);  ///< tanh form
Variable erf(const Variable& x);

/// y silu(z), of one shape (ShapeError otherwise): a gate in one pass over memory.
Variable silu_gate(const Variable& y, const Variable& z);

}  // namespace carousel
