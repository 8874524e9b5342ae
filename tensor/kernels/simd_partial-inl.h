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

/// How a loop body that is written once reaches memory: a whole vector, or the first `count` numbers at the end of a
/// row.
struct WholeVector {
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const hn::TFromD<D>* from) const {
    return hn::LoadU(d, from);
  }
  template <class D>
  HWY_INLINE void store(hn::Vec<D> value, D d, hn::TFromD<D>* to) const {
    hn::StoreU(value, d, to);
  }
};
struct FirstLanes {
  size_t count;
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const hn::TFromD<D>* from) const {
    return load_first(d, from, count);
  }
  template <class D>
  HWY_INLINE void store(hn::Vec<D> value, D d, hn::TFromD<D>* to) const {
    store_first(value, d, to, count);
  }
};

/// Calls body(d, i, WholeVector or FirstLanes) for i = 0, one vector further, .. < n. `body` must not be a lambda,
/// which would not be compiled for the instruction set.
template <class T, class Body>
HWY_INLINE void for_each_vector(int64_t n, const Body& body) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(d, i, WholeVector());
  if (i < n) body(d, i, FirstLanes{static_cast<size_t>(n - i)});
}

}  // namespace carousel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
