#include "kernels_common.h"

#include <carousel/tensor/kernels/blocked_product.h>
#include <carousel/tensor/kernels/few_rows.h>
#include <carousel/tensor/kernels/gemm.h>
#include <carousel/tensor/kernels/product.h>

#include <thread>

namespace carousel::kernels {
namespace {

template <class T>
class Products : public ForFloats<T> {};
TYPED_TEST_SUITE(Products, Floats);

template <class T>
std::vector<double> widened(const std::vector<T>& x) {
  return {x.begin(), x.end()};
}

/// One product with rows further apart than they are long, and all it is compared with.
template <class T>
struct Case {
  int64_t m, n, k;
  bool trans_a, trans_b, has_bias;
  int64_t lda = (trans_a ? m : k) + 3, ldb = (trans_b ? k : n) + 2, ldc = n + 5;
  std::vector<T> a = random_numbers<T>((trans_a ? k : m) * lda, 1), b = random_numbers<T>((trans_b ? n : k) * ldb, 2);
  std::vector<T> bias = random_numbers<T>(n, 3), before = std::vector<T>(static_cast<size_t>(m * ldc), T{7});

  const T* bias_or_null() const { return has_bias ? bias.data() : nullptr; }
  std::vector<T> blocked() const {
    auto c = before;
    blocked_product<T>(m, n, k, {a.data(), lda, trans_a}, {b.data(), ldb, trans_b}, bias_or_null(), c.data(), ldc);
    return c;
  }
  /// Into what is there: one number everywhere.
  std::vector<T> blocked_added() const {
    auto c = before;
    blocked_product<T>(m, n, k, {a.data(), lda, trans_a}, {b.data(), ldb, trans_b}, nullptr, c.data(), ldc,
                       Into::accumulate);
    return c;
  }
  std::vector<T> few_rows() const {
    auto c = before;
    few_rows_product(m, n, k, a.data(), lda, b.data(), ldb, bias_or_null(), c.data(), ldc);
    return c;
  }

  void expect_near_plain(const std::vector<T>& c) const {
    SCOPED_TRACE(testing::Message() << m << " x " << k << " x " << n << " " << trans_a << trans_b << has_bias);
    const auto plain = [&](const auto& x, const auto& y, const std::vector<double>& row) {
      std::vector<double> result(static_cast<size_t>(m * ldc));
      for (int64_t i = 0; i < m && has_bias; ++i) std::copy(row.begin(), row.end(), result.begin() + i * ldc);
      gemm_plain<double>(trans_a, trans_b, m, n, k, 1, x.data(), lda, y.data(), ldb, 1, result.data(), ldc);
      return result;
    };
    const auto exact = plain(widened(a), widened(b), widened(bias));
    const auto size = plain(magnitudes(a), magnitudes(b), magnitudes(bias));
    for (size_t i = 0; i < c.size(); ++i) {
      if (static_cast<int64_t>(i) % ldc >= n) {
        ASSERT_EQ(c[i], 7) << "between the rows";
      } else {  // the headers' bound; for double, twice, as the sum it is compared with has the same error
        const double bound = (sizeof(T) == 4 ? 1 : 2) * static_cast<double>(k + 2) * rounding<T> * size[i];
        ASSERT_LE(std::abs(c[i] - exact[i]), bound) << "row " << i / size_t(ldc) << ", column " << i % size_t(ldc);
      }
    }
  }
};

TYPED_TEST(Products, BlockedEqualsThePlainOne) {
  for_each_target([] {
    int turn = 0;  // all pairs of transpositions, with and without a bias
    for (const int64_t m : {1, 7, 8, 9, 70, 1100}) {
      for (const int64_t n : {1, 16, 17, 65}) {
        for (const int64_t k : {1, 33, 256, 300}) {
          const Case<TypeParam> product{m, n, k, turn % 2 > 0, turn / 2 % 2 > 0, turn / 4 % 2 > 0};
          product.expect_near_plain(product.blocked());
          turn += 3;
        }
      }
    }
  });
}

TYPED_TEST(Products, BlockedAddsToWhatIsThere) {
  for_each_target([] {
    for (const int64_t k : {1, 256, 300}) {
      for (const bool transposed : {false, true}) {
        Case<TypeParam> product{70, 65, k, transposed, !transposed, true};
        product.bias.assign(product.bias.size(), product.before[0]);  // the same as to begin with it everywhere
        product.expect_near_plain(product.blocked_added());
      }
    }
  });
}

TYPED_TEST(Products, BlockedTakesMoreColumnsThanABlockHas) {
  for (const bool transposed : {false, true}) {
    const Case<TypeParam> product{9, 2100, 270, !transposed, transposed, true};
    product.expect_near_plain(product.blocked());
  }
}

TYPED_TEST(Products, TheThreadCountChangesNoBit) {
  const Case<TypeParam> large{150, 130, 520, true, false, true}, row{1, 5000, 600, false, true, true};
  for (int repeat = 0; repeat < 5; ++repeat) {
    expect_same_for_every_thread_count([&] { return large.blocked(); });
    expect_same_for_every_thread_count([&] { return row.few_rows(); });
  }
}

TYPED_TEST(Products, UserThreadsDoNotDisturbOneAnother) {
  const Case<TypeParam> product{70, 90, 300, false, true, true};
  const auto alone = product.blocked();
  std::vector<std::vector<TypeParam>> results(4);
  std::vector<std::thread> threads;
  threads.reserve(results.size());
  for (auto& result : results) threads.emplace_back([&] { result = product.blocked(); });
  for (auto& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, alone);
}

TYPED_TEST(Products, FewRowsEqualThePlainOne) {
  for_each_target([] {
    for (const int64_t m : {1, 2, 3, 5}) {
      for (const int64_t n : {1, 3, 4, 6, 900}) {
        for (const int64_t k : {1, 8, 31, 300}) {
          const Case<TypeParam> product{m, n, k, false, true, n % 2 == 0};
          product.expect_near_plain(product.few_rows());
        }
      }
    }
  });
}

TYPED_TEST(Products, TakeEmptySizes) {
  for (const bool has_bias : {false, true}) {
    for (const auto& [m, n, k] : {std::tuple{2, 3, 0}, {0, 3, 4}, {2, 0, 4}}) {
      const Case<TypeParam> product{m, n, k, false, true, has_bias};
      product.expect_near_plain(product.blocked());
      product.expect_near_plain(product.few_rows());
    }
  }
}

TYPED_TEST(Products, SpreadNanAndInfinityAsThePlainOne) {
  using T = TypeParam;
  for (const T value : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity()}) {
    Case<T> product{3, 40, 290, false, true, false};
    product.a[size_t(product.lda + 280)] = value;  // row 1
    product.b[size_t(5 * product.ldb + 280)] = 0;  // column 5: infinity times zero
    for (const auto& c : {product.blocked(), product.few_rows()}) {
      for (int64_t j = 0; j < product.n; ++j) {
        EXPECT_TRUE(std::isfinite(c[size_t(j)]));
        EXPECT_FALSE(std::isfinite(c[size_t(product.ldc + j)]));
      }
      EXPECT_TRUE(std::isnan(c[size_t(product.ldc + 5)]));
    }
  }
}

/// Whatever takes a product, it is the product.
TYPED_TEST(Products, EverySizeIsRight) {
  using T = TypeParam;
  for (const auto& [m, n, k] : {std::tuple{1, 50, 40}, {4, 9, 70}, {6, 20, 30}, {90, 70, 80}, {300, 64, 65}}) {
    for (const bool trans_a : {false, true}) {
      for (const bool trans_b : {false, true}) {
        Case<T> whole{m, n, k, trans_a, trans_b, true};
        whole.ldc = n;
        std::vector<T> c(size_t(m * n), std::numeric_limits<T>::quiet_NaN());
        product<T>(m, n, k, {whole.a.data(), whole.lda, trans_a}, {whole.b.data(), whole.ldb, trans_b},
                   whole.bias.data(), c.data());
        whole.expect_near_plain(c);
      }
    }
  }
}

}  // namespace
}  // namespace carousel::kernels
