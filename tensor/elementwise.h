#pragma once

#include <carousel/tensor/tensor.h>

/// Element by element, with NumPy's broadcasting. Two operands must have the same dtype (ValueError otherwise); a
/// double stands for a scalar of the other's dtype. Results are new and row-major.
namespace carousel {

// Arithmetic on float32, float64 and int64. Integer division truncates and throws ValueError on a zero divisor.
Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a, const Tensor& b);  ///< NaN if either is
Tensor minimum(const Tensor& a, const Tensor& b);  ///< NaN if either is
Tensor pow(const Tensor& a, const Tensor& b);      ///< floating only
Tensor pow(const Tensor& a, double exponent);
Tensor clamp(const Tensor& x, double low, double high);  ///< NaN stays NaN; throws ValueError when low > high

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

// Mathematics. neg, abs, sign, square and relu also take int64; the others floating point only.
Tensor neg(const Tensor& x);
Tensor abs(const Tensor& x);
Tensor sign(const Tensor& x);
Tensor square(const Tensor& x);
Tensor reciprocal(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor expm1(const Tensor& x);
Tensor log(const Tensor& x);
Tensor log1p(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor sigmoid(const Tensor& x);   ///< 1 / (1 + exp(-x)), exact at both extremes
Tensor softplus(const Tensor& x);  ///< log(1 + exp(x)) without overflow
Tensor relu(const Tensor& x);      ///< max(x, 0); NaN stays NaN
Tensor silu(const Tensor& x);      ///< x sigmoid(x)
Tensor gelu(const Tensor& x);      ///< tanh form: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
Tensor erf(const Tensor& x);

// In-place: a <- a op b. `b` broadcasts to a's shape; where the two overlap in memory the result is that of the
// out-of-place form. Throws ValueError on a tensor whose elements overlap one another.
Tensor& add_(Tensor& a, const Tensor& b);
Tensor& sub_(Tensor& a, const Tensor& b);
Tensor& mul_(Tensor& a, const Tensor& b);
Tensor& div_(Tensor& a, const Tensor& b);
Tensor& add_(Tensor& a, double b);
Tensor& mul_(Tensor& a, double b);

}  // namespace carousel
