// exp, tanh, sigmoid and softplus of one vector of floats or doubles.
//
//   exp(x)     = 2^n e^r,  n = round(x / ln 2),  r = x - n ln 2 (ln 2 in two parts), e^r - 1 by its Taylor polynomial
//   tanh(x)    = sign(x) (e^2|x| - 1) / (e^2|x| + 1), from e^r - 1, so that small x lose nothing
//   sigmoid(x) = 1 / (1 + e^-|x|) for x >= 0, e^-|x| / (1 + e^-|x|) below
//   softplus(x) = max(x, 0) + log(1 + e^-|x|), log(1 + u) = 2 artanh(u / (2 + u)) by its Taylor polynomial
//
// Relative error at most 3e-7 in float and 1e-15 in double wherever the result is a normal number, half a step of the
// subnormals (and that error) below. Infinities give the limits, NaN gives NaN. Highway's own Exp turns NaN into 0.
#if defined(CAROUSEL_SIMD_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CAROUSEL_SIMD_MATH_INL_H
#undef CAROUSEL_SIMD_MATH_INL_H
#else
#define CAROUSEL_SIMD_MATH_INL_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace carousel::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// What the functions need to know of a scalar type.
template <class T>
struct Scalar;

template <>
struct Scalar<float> {
  static constexpr int mantissa_bits = 23;
  static constexpr float exponent_bias = 127;
  static constexpr float rounder = 0x1.8p23f;    // adding it leaves the rounded integer in the lowest bits
  static constexpr float ln2_high = 0x1.63p-1f;  // few bits, so that n ln2_high is exact
  static constexpr float ln2_low = -0x1.bd0106p-13f;
  static constexpr float exp_low = -104, exp_high = 89;  // beyond: 0 and infinity
  static constexpr float exp_normal = 87;                // between - and + this: normal numbers
  static constexpr float tanh_high = 10;                 // beyond: 1
  static constexpr int degree = 7;                       // 0.347^8 / 8! = 5e-9
  static constexpr int artanh_terms = 6;                 // (1/9)^7 / 15 = 1.4e-8
};

template <>
struct Scalar<double> {
  static constexpr int mantissa_bits = 52;
  static constexpr double exponent_bias = 1023;
  static constexpr double rounder = 0x1.8p52;
  static constexpr double ln2_high = 0x1.62e42feep-1;
  static constexpr double ln2_low = 0x1.a39ef35793c76p-33;
  static constexpr double exp_low = -746, exp_high = 710;
  static constexpr double exp_normal = 708;
  static constexpr double tanh_high = 20;
  static constexpr int degree = 12;        // 0.347^13 / 13! = 2e-16
  static constexpr int artanh_terms = 15;  // (1/9)^16 / 33 = 1.6e-17
};

template <class T>
constexpr T inverse_factorial(int k) {
  double factorial = 1;
  for (int i = 2; i <= k; ++i) factorial *= i;
  return static_cast<T>(1 / factorial);
}

/// n = round(x / ln 2).
template <class D>
HWY_INLINE hn::Vec<D> binary_exponent(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  const auto rounder = hn::Set(d, Scalar<T>::rounder);
  return hn::Sub(hn::MulAdd(x, hn::Set(d, static_cast<T>(0x1.71547652b82fep0)), rounder), rounder);
}

/// e^(x - n ln 2) - 1.
template <class D>
HWY_INLINE hn::Vec<D> reduced_expm1(D d, hn::Vec<D> x, hn::Vec<D> n) {
  using T = hn::TFromD<D>;
  auto r = hn::NegMulAdd(n, hn::Set(d, Scalar<T>::ln2_high), x);
  r = hn::NegMulAdd(n, hn::Set(d, Scalar<T>::ln2_low), r);
  auto sum = hn::Set(d, inverse_factorial<T>(Scalar<T>::degree));
#pragma GCC unroll 16
  for (int k = Scalar<T>::degree - 1; k >= 2; --k) sum = hn::MulAdd(sum, r, hn::Set(d, inverse_factorial<T>(k)));
  return hn::MulAdd(hn::Mul(sum, r), r, r);
}

/// 2^n for a whole number n in the range of normal exponents.
template <class D>
HWY_INLINE hn::Vec<D> power_of_two(D d, hn::Vec<D> n) {
  using T = hn::TFromD<D>;
  const hn::RebindToSigned<D> bits;
  const auto biased = hn::Add(n, hn::Set(d, Scalar<T>::rounder + Scalar<T>::exponent_bias));
  return hn::BitCast(d, hn::ShiftLeft<Scalar<T>::mantissa_bits>(hn::BitCast(bits, biased)));
}

template <class D>
HWY_INLINE hn::Vec<D> keep_nan(hn::Vec<D> x, hn::Vec<D> result) {
  return hn::IfThenElse(hn::Eq(x, x), result, x);
}

/// e^x where it may be no normal number, or x none at all.
template <class D>
HWY_NOINLINE hn::Vec<D> exp_at_extremes(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  const auto bounded = hn::Min(hn::Max(x, hn::Set(d, Scalar<T>::exp_low)), hn::Set(d, Scalar<T>::exp_high));
  const auto n = binary_exponent(d, bounded);
  const auto nearest = hn::Add(reduced_expm1(d, bounded, n), hn::Set(d, static_cast<T>(1)));
  // What ends as 0 is 0 before it is scaled: on the way it would be subnormal, which costs many cycles.
  const auto power = hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, Scalar<T>::exp_low)), nearest);
  // 2^n in two halves: n alone would leave the exponents of normal numbers at both ends.
  const auto rounder = hn::Set(d, Scalar<T>::rounder);
  const auto half = hn::Sub(hn::MulAdd(n, hn::Set(d, static_cast<T>(0.5)), rounder), rounder);
  const auto result = hn::Mul(hn::Mul(power, power_of_two(d, half)), power_of_two(d, hn::Sub(n, half)));
  return keep_nan<D>(x, result);
}

/// Where all results are normal numbers, n is added to the exponent of e^r, which is the product to the last bit.
template <class D>
HWY_INLINE hn::Vec<D> exp(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Lt(hn::Abs(x), hn::Set(d, Scalar<T>::exp_normal))))) {
    return exp_at_extremes(d, x);
  }
  const hn::RebindToSigned<D> bits;
  const auto rounder = hn::Set(d, Scalar<T>::rounder);
  const auto shifted = hn::MulAdd(x, hn::Set(d, static_cast<T>(0x1.71547652b82fep0)), rounder);  // n in the low bits
  const auto power = hn::Add(reduced_expm1(d, x, hn::Sub(shifted, rounder)), hn::Set(d, static_cast<T>(1)));
  const auto exponent = hn::ShiftLeft<Scalar<T>::mantissa_bits>(hn::BitCast(bits, shifted));
  return hn::BitCast(d, hn::Add(hn::BitCast(bits, power), exponent));
}

template <class D>
HWY_INLINE hn::Vec<D> tanh(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  const auto one = hn::Set(d, static_cast<T>(1));
  const auto bounded = hn::Min(hn::Abs(x), hn::Set(d, Scalar<T>::tanh_high));
  const auto doubled = hn::Add(bounded, bounded);
  const auto n = binary_exponent(d, doubled);
  const auto scale = power_of_two(d, n);
  const auto expm1 = hn::MulAdd(scale, reduced_expm1(d, doubled, n), hn::Sub(scale, one));
  const auto result = hn::Div(expm1, hn::Add(expm1, hn::Set(d, static_cast<T>(2))));
  return keep_nan<D>(x, hn::CopySignToAbs(result, x));
}

template <class D>
HWY_INLINE hn::Vec<D> sigmoid(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  const auto one = hn::Set(d, static_cast<T>(1));
  const auto e = exp(d, hn::Neg(hn::Abs(x)));
  const auto numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
  return hn::Div(numerator, hn::Add(one, e));
}

/// log(1 + u) for 0 <= u <= 1: with w = u / (2 + u) it is 2 (w + w^3 / 3 + w^5 / 5 + ..), whose first term 2 w = u - u
/// w is taken from u itself, so that small u lose nothing.
template <class D>
HWY_INLINE hn::Vec<D> log1p_of_fraction(D d, hn::Vec<D> u) {
  using T = hn::TFromD<D>;
  const auto w = hn::Div(u, hn::Add(u, hn::Set(d, static_cast<T>(2))));
  const auto w2 = hn::Mul(w, w);
  auto sum = hn::Set(d, static_cast<T>(2.0 / (2 * Scalar<T>::artanh_terms + 1)));
#pragma GCC unroll 16
  for (int k = Scalar<T>::artanh_terms - 1; k >= 1; --k) {
    sum = hn::MulAdd(sum, w2, hn::Set(d, static_cast<T>(2.0 / (2 * k + 1))));
  }
  return hn::NegMulAdd(w, hn::NegMulAdd(w2, sum, u), u);
}

template <class D>
HWY_INLINE hn::Vec<D> softplus(D d, hn::Vec<D> x) {
  return hn::Add(hn::Max(x, hn::Zero(d)), log1p_of_fraction(d, exp(d, hn::Neg(hn::Abs(x)))));
}

}  // namespace carousel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
