#pragma once

#include <carousel/tensor/kernels/instruction_sets.h>
#include <carousel/tensor/kernels/threads.h>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace carousel::kernels {

inline void choose_targets(int64_t targets) {  // 0: what the machine has
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

/// Runs `body` once for each instruction set that the kernels are compiled for and this machine has.
template <class Body>
void for_each_target(const Body& body) {
  const int64_t compiled = HWY_TARGETS;
  for (int64_t left = hwy::SupportedTargets() & compiled; left != 0; left &= left - 1) {
    const int64_t target = left & -left;
    SCOPED_TRACE(hwy::TargetName(target));
    choose_targets(target);
    body();
  }
  choose_targets(0);
}

/// What `body()` returns with one thread and with three must be the same bits.
template <class Body>
void expect_same_for_every_thread_count(const Body& body) {
  const int before = thread_count();
  set_thread_count(1);
  const auto one = body();
  set_thread_count(3);
  const auto three = body();
  set_thread_count(before);
  EXPECT_EQ(one, three);
}

template <class T>
std::vector<T> random_numbers(int64_t n, uint32_t seed, double scale = 1) {
  std::mt19937 bits(seed);
  std::normal_distribution<double> normal(0, scale);
  std::vector<T> numbers(n);
  for (T& x : numbers) x = static_cast<T>(normal(bits));
  return numbers;
}

/// `count` numbers from low to high, both among them.
template <class T>
std::vector<T> evenly(double low, double high, int count) {
  std::vector<T> x(count);
  for (int i = 0; i < count; ++i) x[i] = static_cast<T>(low + (high - low) * i / (count - 1));
  return x;
}

/// The numbers without their signs: what bounds of errors are made of.
template <class T>
std::vector<double> magnitudes(const std::vector<T>& x) {
  std::vector<double> sizes;
  for (const T value : x) sizes.push_back(std::abs(static_cast<double>(value)));
  return sizes;
}

/// Half the distance from 1 to the next number: the error of one rounding.
template <class T>
inline constexpr double rounding = std::numeric_limits<T>::epsilon() / 2;

template <class T>
double largest_difference(const std::vector<T>& a, const std::vector<T>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - b[i]);
    largest = difference > largest || std::isnan(difference) ? difference : largest;
    if (std::isnan(largest)) break;
  }
  return largest;
}

template <class T>
class ForFloats : public testing::Test {};
using Floats = testing::Types<float, double>;

}  // namespace carousel::kernels
