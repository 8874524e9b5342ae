#pragma once

#include <cstdint>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace carousel::kernels {

/// Whether a thread takes subnormal numbers for zeros, as arguments and as results. A few bits of the processor's
/// control register, which every thread has for itself: FTZ and DAZ on x86-64, FZ on arm64, nothing elsewhere.
class FloatMode {
 public:
  static FloatMode of_this_thread() { return FloatMode(control() & flush_bits); }
  static FloatMode flushing() { return FloatMode(flush_bits); }
  static FloatMode precise() { return FloatMode(0); }

  /// Makes it this thread's mode.
  void apply() const {
    const uint64_t before = control();
    if ((before & flush_bits) != bits_) set_control((before & ~flush_bits) | bits_);
  }

  /// For who keeps a mode without knowing what it is.
  uint64_t bits() const { return bits_; }
  static FloatMode of_bits(uint64_t bits) { return FloatMode(bits & flush_bits); }

 private:
  explicit FloatMode(uint64_t bits) : bits_(bits) {}

#if defined(__SSE__)
  static constexpr uint64_t flush_bits = 0x8040;
  static uint64_t control() { return _mm_getcsr(); }
  static void set_control(uint64_t word) { _mm_setcsr(static_cast<unsigned>(word)); }
#elif defined(__aarch64__)
  static constexpr uint64_t flush_bits = uint64_t{1} << 24;
  static uint64_t control() {
    uint64_t word;
    asm volatile("mrs %0, fpcr" : "=r"(word));
    return word;
  }
  static void set_control(uint64_t word) { asm volatile("msr fpcr, %0" : : "r"(word)); }
#else
  static constexpr uint64_t flush_bits = 0;
  static uint64_t control() { return 0; }
  static void set_control(uint64_t) {}
#endif

  uint64_t bits_;
};

}  // namespace carousel::kernels
