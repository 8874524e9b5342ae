#include <carousel/tensor/compare.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/kernels/available_cpus.h>
#include <carousel/tensor/kernels/blas.h>
#include <carousel/tensor/kernels/blas_check.h>
#include <carousel/tensor/kernels/gemm.h>
#include <carousel/tensor/matmul.h>
#include <carousel/tensor/reduce.h>
#include <carousel/tensor/runtime.h>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "restore_threads.h"
#include "support.h"

extern "C" int openblas_get_num_threads() __attribute__((weak));  // not there in a build without BLAS

namespace carousel {
namespace {

using test::expect_error;

/// What a wrong BLAS kernel looks like: one number of many is off.
template <class T>
void wrong_gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda,
                const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  kernels::gemm_plain(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  if (trans_b) c[(m - 1) * ldc + n - 1] += 1;
}

/// Wrong only in the code for large products.
template <class T>
void wrong_large_gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda,
                      const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  kernels::gemm_plain(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  if (m * n * k > 1000000) c[100 * ldc + 77] += 1;
}

TEST(Runtime, TheBlasInUseIsRight) { EXPECT_NO_THROW(check_blas()); }

TEST(Runtime, AWrongProductIsAnErrorThatNamesTheBlas) {
  const std::string rest = " numbers from " + kernels::blas_name() + ", kernel " + kernels::blas_kernel() +
                           "; another kernel may be right (set OPENBLAS_CORETYPE, for instance to Haswell)";
  expect_error<ValueError>("[check_blas] BLAS products must equal plain ones: got wrong float32" + rest,
                           [] { kernels::check_products(wrong_gemm<float>, kernels::gemm_plain<double>); });
  expect_error<ValueError>("[check_blas] BLAS products must equal plain ones: got wrong float64" + rest,
                           [] { kernels::check_products(kernels::gemm_plain<float>, wrong_gemm<double>); });
  EXPECT_THROW(kernels::check_products(wrong_large_gemm<float>, kernels::gemm_plain<double>), ValueError);
  EXPECT_THROW(kernels::check_products(kernels::gemm_plain<float>, wrong_large_gemm<double>), ValueError);
  EXPECT_NO_THROW(kernels::check_products(kernels::gemm_plain<float>, kernels::gemm_plain<double>));
}

TEST(Runtime, InfoNamesEverything) {
  const RuntimeInfo info = runtime_info();
  EXPECT_TRUE(info.blas.starts_with("OpenBLAS 0.") || info.blas == "none (plain products)") << info.blas;
  EXPECT_FALSE(info.blas_kernel.empty());
  EXPECT_FALSE(info.simd.empty());
  EXPECT_EQ(info.threads, threads());
  EXPECT_EQ(to_string({.blas = "OpenBLAS 0.3.21 (openmp)", .blas_kernel = "Haswell", .simd = "AVX2", .threads = 2}),
            "BLAS OpenBLAS 0.3.21 (openmp), kernel Haswell; SIMD AVX2; 2 threads");
}

TEST(Runtime, ThreadCountsAreChecked) {
  const test::RestoreThreads restore;
  set_threads(3);
  EXPECT_EQ(threads(), 3);
  expect_error<ValueError>("[set_threads] the number of threads must be in [1, 1024]: got 0", [] { set_threads(0); });
  expect_error<ValueError>("[set_threads] the number of threads must be in [1, 1024]: got 1025",
                           [] { set_threads(1025); });
  EXPECT_EQ(threads(), 3);
}

TEST(Runtime, WhatIsAvailableDoesNotFollowWhatIsSet) {
  const test::RestoreThreads restore;
  const int available = available_threads();
  set_threads(available + 1);
  EXPECT_EQ(available_threads(), available);
}

TEST(Runtime, TheAffinityMaskLimitsThreads) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  EXPECT_LE(kernels::available_cpus(), CPU_COUNT(&before));
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(kernels::available_cpus(), 1);
  sched_setaffinity(0, sizeof before, &before);
}

/// A made-up folder of control groups.
class ControlGroups : public testing::Test {
 protected:
  ControlGroups() { std::filesystem::remove_all(root_); }
  ~ControlGroups() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  const std::string root_ = testing::TempDir() + "carousel_groups_" + std::to_string(getpid());
};

TEST_F(ControlGroups, Version2ReadsTheTightestGroupUpToTheRoot) {
  write("/a/b/cpu.max", "max 100000\n");
  write("/a/cpu.max", "250000 100000\n");
  write("/cpu.max", "800000 100000\n");
  EXPECT_EQ(kernels::cpu_quota("0::/a/b\n", root_), 3);
  EXPECT_EQ(kernels::cpu_quota("0::/\n", root_), 8);
  EXPECT_EQ(kernels::cpu_quota("0::/unseen/group\n", root_), 8);
}

TEST_F(ControlGroups, Version1ReadsItsTwoFiles) {
  write("/cpu/box/cpu.cfs_quota_us", "50000\n");
  write("/cpu/box/cpu.cfs_period_us", "100000\n");
  write("/cpu/cpu.cfs_quota_us", "-1\n");
  write("/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(kernels::cpu_quota("3:cpuset:/box\n4:cpu,cpuacct:/box\n0::/\n", root_), 1);
  EXPECT_EQ(kernels::cpu_quota("4:cpu,cpuacct:/\n", root_), 0);
  EXPECT_EQ(kernels::cpu_quota("3:cpuset:/box\n", root_), 0);
}

TEST_F(ControlGroups, NoneMeansNoLimit) {
  EXPECT_EQ(kernels::cpu_quota("", root_), 0);
  EXPECT_EQ(kernels::cpu_quota("nonsense", root_), 0);
  write("/cpu.max", "max\n");
  EXPECT_EQ(kernels::cpu_quota("0::/\n", root_), 0);
}

/// Small integers, so that products are exact whatever the number of threads.
Tensor integers(int64_t size) { return Rng(1).integers({size, size}, -4, 5).to(DType::float32); }

TEST(Threads, AForkedChildComputesWithOneThread) {  // HD-38
  const test::RestoreThreads restore;
  set_threads(2);
  std::vector<Tensor> factors, expected;
  for (int64_t size : {7, 8, 512}) {
    factors.push_back(integers(size));
    expected.push_back(matmul(factors.back(), factors.back()));
  }
  const Tensor many = ones({1000000});
  EXPECT_EQ(sum(many).item(), 1e6);

  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a hang is a failure; generous, because sanitizers and busy machines are slow
    bool right = threads() == 1 && sum(many).item() == 1e6;
    for (size_t i = 0; i < 3; ++i) right = right && identical(matmul(factors[i], factors[i]), expected[i]);
    _exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  EXPECT_EQ(threads(), 2);
}

TEST(Threads, ProductsInUserThreadsAreRight) {  // HD-38
  const test::RestoreThreads restore;
  set_threads(2);
  const Tensor a = integers(256), expected = matmul(a, a);
  int right[2] = {};
  const auto work = [&](int which) {
    for (int i = 0; i < 10; ++i) right[which] += identical(matmul(a, a), expected);
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  EXPECT_EQ(right[0] + right[1], 20);
}

#if !defined(CAROUSEL_SANITIZED)  // a sanitizer takes its own time
// Threads of this process that run or could, but for the one that asks.
int runnable_threads() {
  int runnable = -1;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "stat");
    std::string stat;
    std::getline(file, stat);  // "id (name) state ..."; empty when the thread has ended
    const size_t name_end = stat.rfind(')');
    runnable += name_end != std::string::npos && stat[name_end + 2] == 'R' ? 1 : 0;
  }
  return runnable;
}

TEST(Threads, ProductsInTwoUserThreadsNeitherCrowdTheProcessorsNorTakeLonger) {  // HD-38
  const test::RestoreThreads restore;
  set_threads(2);
  const Tensor a = integers(512), expected = matmul(a, a);
  const auto fifty = [&] {
    bool right = true;
    for (int i = 0; i < 50; ++i) right = right && identical(matmul(a, a), expected);
    EXPECT_TRUE(right);
  };
  const auto seconds = [](const auto& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const auto together = [&fifty] {
    std::thread other(fifty);
    fifty();
    other.join();
  };
  double ratio = INFINITY;
  for (int attempt = 0; attempt < 20 && ratio > 1.2; ++attempt) {  // others use the machine too
    const double one_after_another = seconds(fifty) + seconds(fifty);
    const double at_once = seconds(together);
    EXPECT_LE(at_once, 10);
    ratio = std::min(ratio, at_once / one_after_another);
  }
  EXPECT_LE(ratio, 1.2);

  std::atomic<bool> done = false;
  std::thread observer([&done] {
    while (!done) {
      EXPECT_LE(runnable_threads(), 4);  // for two processors
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  together();
  done = true;
  observer.join();
}
#endif

TEST(Threads, ABlasWithItsOwnPoolFollowsTheThreadCount) {
  const bool own_threads = kernels::blas_name().find("(pthread)") != std::string::npos;
  const test::RestoreThreads restore;
  const Tensor a = integers(256);
  for (int count : {2, 1, 2}) {
    set_threads(count);
    matmul(a, a);
    EXPECT_EQ(threads(), count);
    EXPECT_TRUE(!own_threads || openblas_get_num_threads() == count);
  }
}

TEST(Threads, ManySmallProductsMatchSingleOnes) {
  const test::RestoreThreads restore;
  set_threads(3);
  Rng rng(8);
  const Tensor a = rng.normal({100, 30, 40}), b = rng.normal({100, 40, 20});
  const Tensor whole = matmul(a, b);
  for (int i : {0, 37, 99}) {  // sums of 40 products of about 1, added up in another order
    EXPECT_TRUE(all_close(whole.select(0, i), matmul(a.select(0, i), b.select(0, i)), 0, 1e-5));
  }
}

}  // namespace
}  // namespace carousel
