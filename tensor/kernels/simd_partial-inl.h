// Vectors that are only partly there: the ends of rows. Highway 1.0.3 may touch memory beyond them otherwise.
#if defined(CAROUSEL_SIMD_PARTIAL_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CAROUSEL_SIMD_PARTIAL_INL_H
#undef CAROUSEL_SIMD_PARTIAL_INL_H
#else
#define CAROUSEL_SIMD_PARTIAL_INL_H
#endif

#include <hwy/highway.h>

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace carousel::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The first `count` lanes from memory, `filler` in the others.
template <class D>
HWY_INLINE hn::Vec<D> load_first(D d, const hn::TFromD<D>* from, size_t count, hn::TFromD<D> filler = 0) {
  HWY_ALIGN hn::TFromD<D> buffer[hn::MaxLanes(d)];
  hn::Store(hn::Set(d, filler), d, buffer);
  std::memcpy(buffer, from, count * sizeof(buffer[0]));
  return hn::Load(d, buffer);
}

template <class D>
HWY_INLINE void store_first(hn::Vec<D> value, D d, hn::TFromD<D>* to, size_t count) {
  HWY_ALIGN hn::TFromD<D> buffer[hn::MaxLanes(d)];
  hn::Store(value, d, buffer);
  std::memcpy(to, buffer, count * sizeof(buffer[0]));
}

}  // namespace carousel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
