#pragma once

#include <carousel/tensor/tensor.h>

/// Element by element, with NumPy's broadcasting: any shapes that broadcast together (ShapeError otherwise), giving the
/// common one. Two operands must have the same dtype (ValueError otherwise), which is also the result's; a double
/// stands for a scalar of the other's dtype (ValueError where int64 cannot hold it). Results are new and row-major. A
/// dtype that an operation does not take, and an undefined tensor, are ValueErrors.
namespace carousel {

// Arithmetic on float32, float64 and int64. Integers wrap around.
Tensor add(const Tensor& a, const Tensor& b);      ///< a + b
Tensor sub(const Tensor& a, const Tensor& b);      ///< a - b
Tensor mul(const Tensor& a, const Tensor& b);      ///< a b
Tensor div(const Tensor& a, const Tensor& b);      ///< a / b; int64: towards zero, ValueError on a zero divisor
Tensor maximum(const Tensor& a, const Tensor& b);  ///< the larger; NaN if either is
Tensor minimum(const Tensor& a, const Tensor& b);  ///< the smaller; NaN if either is
Tensor pow(const Tensor& a, const Tensor& b);      ///< a^b, float32 and float64 only
Tensor pow(const Tensor& a, double exponent);      ///< the same with one exponent for all
/// min(max(x, low), high); NaN stays NaN, infinite bounds are none. Throws ValueError when low > high.
Tensor clamp(const Tensor& x, double low, double high);

// The operators are these functions.
inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
Tensor operator+(const Tensor& a, double b);
Tensor operator-(const Tensor& a, double b);
Tensor operator*(const Tensor& a, double b);
Tensor operator/(const Tensor& a, double b);
Tensor operator+(double a, const Tensor& b);
Tensor operator-(double a, const Tensor& b);
Tensor operator*(double a, const Tensor& b);
Tensor operator/(double a, const Tensor& b);
Tensor operator-(const Tensor& x);

// Mathematics: results of x's shape and dtype. neg, abs, sign, square and relu also take int64 (which wraps around);
// the others float32 and float64 only. NaN gives NaN, and arguments outside a function's domain do too.
Tensor neg(const Tensor& x);         ///< -x
Tensor abs(const Tensor& x);         ///< |x|
Tensor sign(const Tensor& x);        ///< -1, 0 or 1
Tensor square(const Tensor& x);      ///< x^2
Tensor reciprocal(const Tensor& x);  ///< 1 / x
Tensor exp(const Tensor& x);         ///< e^x
Tensor expm1(const Tensor& x);       ///< e^x - 1, exact for small x
Tensor log(const Tensor& x);         ///< natural logarithm
Tensor log1p(const Tensor& x);       ///< log(1 + x), exact for small x
Tensor sqrt(const Tensor& x);        ///< square root
Tensor rsqrt(const Tensor& x);       ///< 1 / sqrt(x)
Tensor sin(const Tensor& x);         ///< of x in radians
Tensor cos(const Tensor& x);         ///< of x in radians
Tensor tanh(const Tensor& x);        ///< (e^x - e^-x) / (e^x + e^-x)
Tensor sigmoid(const Tensor& x);     ///< 1 / (1 + exp(-x)), exact at both extremes
Tensor softplus(const Tensor& x);    ///< log(1 + exp(x)) without overflow
Tensor relu(const Tensor& x);        ///< max(x, 0); NaN stays NaN
Tensor silu(const Tensor& x);        ///< x sigmoid(x)
Tensor gelu(const Tensor& x);        ///< tanh form: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
Tensor erf(const Tensor& x);         ///< 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x

// In-place: a <- a op b, for the dtypes and with the errors of the form out of place. `b` broadcasts to a's shape
// (ShapeError otherwise); where the two overlap in memory the result is that of the form out of place. Returns a.
// Throws ValueError on a tensor whose elements overlap one another.
Tensor& add_(Tensor& a, const Tensor& b);
Tensor& sub_(Tensor& a, const Tensor& b);
Tensor& mul_(Tensor& a, const Tensor& b);
Tensor& div_(Tensor& a, const Tensor& b);
Tensor& add_(Tensor& a, double b);
Tensor& mul_(Tensor& a, double b);

}  // namespace carousel
