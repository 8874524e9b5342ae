#include "expect_error.h"

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/gradcheck.h>
#include <carousel/autograd/matmul.h>
#include <carousel/autograd/reduce.h>
#include <carousel/autograd/shape.h>
#include <carousel/nn/attention.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/random.h>
#include <carousel/tensor/runtime.h>
#include <carousel/tensor/storage.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <limits>
#include <string>

namespace carousel {
namespace {

using test::expect_error;

// Tolerances, where no other reason stands beside them: in double a rounding is 1e-16 of a number near 1. Single
// weights and outputs are a few dozen of them from the formula (1e-14, 1e-13 as parts of one); values and gradients
// that add some hundred products in two orders stay within 1e-12.

Tensor numbers(const Shape& shape, uint64_t seed, DType dtype = DType::float64) {
  Rng rng(seed);
  return rng.normal(shape, 0, 1, dtype);
}

Tensor rows(std::initializer_list<double> values, const Shape& shape) {
  return Tensor::from(values, shape, DType::float64);
}

// softmax(q k^T / sqrt(hd), where `seen`) v of elementary operations.
Variable by_definition(const Variable& q, const Variable& k, const Variable& v, const Tensor& seen) {
  const Variable scores = matmul(q, transpose(k, 2, 3)) * (1 / std::sqrt(static_cast<double>(q.size(3))));
  const Variable hidden = full({}, -std::numeric_limits<double>::infinity(), q.dtype());
  return matmul(softmax(where(seen, scores, hidden), -1), v);
}

TEST(Attention, ARowThatSeesNothingGivesZerosAndNoGradient) {  // HD-03
  const Tensor qk = rows({1, 0, 0, 1, 1, 1}, {1, 1, 3, 2});
  const Tensor visible = rows({1, 0, 0, 1, 1, 0, 0, 0, 0}, {1, 3, 3}).to(DType::boolean);
  const Variable q = Variable::parameter(qk), k = Variable::parameter(qk.clone());
  const Variable v = Variable::parameter(rows({1, 2, 3, 4, 5, 6}, {1, 1, 3, 2}));
  const Variable y = scaled_dot_product_attention(q, k, v, {.visible = visible});
  const Tensor expected = rows({1, 2, 2.339523, 3.339523, 0, 0}, {1, 1, 3, 2});
  EXPECT_TRUE(all_close(y.value(), expected, 0, 5e-7));  // the handed numbers have six digits
  EXPECT_TRUE(identical(y.value().select(2, 2).contiguous(), zeros({1, 1, 2}, DType::float64)));
  sum(slice(y, 2, {.stop = 2})).backward();

  const Variable q2 = Variable::parameter(qk.slice(2, {.stop = 2}).clone());
  const Variable k2 = Variable::parameter(qk.clone()), v2 = Variable::parameter(v.value().clone());
  sum(scaled_dot_product_attention(q2, k2, v2, {.visible = visible.slice(1, {.stop = 2})})).backward();
  EXPECT_TRUE(identical(q.grad().slice(2, {.stop = 2}).contiguous(), q2.grad().contiguous()));
  EXPECT_TRUE(identical(q.grad().select(2, 2).contiguous(), zeros({1, 1, 2}, DType::float64)));
  EXPECT_TRUE(identical(k.grad().contiguous(), k2.grad().contiguous()));
  EXPECT_TRUE(identical(v.grad().contiguous(), v2.grad().contiguous()));
  EXPECT_TRUE(all_finite(k.grad()) && all_finite(v.grad()));
}

TEST(Attention, IsTheSoftmaxOfTheScaledProducts) {
  const Tensor q = rows({1, 0}, {1, 1, 1, 2}), k = rows({2, 7, 0, -3}, {1, 1, 2, 2}),
               v = rows({1, 10, 0, 0}, k.shape());
  const double chance = 1 / (1 + std::exp(-std::sqrt(2.0)));  // of scores sqrt(2) and 0
  EXPECT_TRUE(all_close(scaled_dot_product_attention(q, k, v).value(), rows({chance, 10 * chance}, q.shape()), 1e-14));
  const double steep = 1 / (1 + std::exp(-6.0));
  EXPECT_TRUE(all_close(scaled_dot_product_attention(q, k, v, {.scale = 3}).value(),
                        rows({steep, 10 * steep}, q.shape()), 1e-14));
  EXPECT_TRUE(all_close(attention_weights(q, k, {.scale = 3}), rows({steep, 1 - steep}, q.shape()), 1e-13));
}

struct Masked {
  std::string name;
  AttentionOptions options;
  Tensor seen;  // [B, 1, T, S]
};

// Every mask and all of them, for T queries after S - T older keys.
std::vector<Masked> masks(int64_t batch, int64_t queries, int64_t keys) {
  std::vector<int64_t> firsts;
  for (int64_t i = 0; i < batch * queries; ++i) firsts.push_back(i * 5 % 7 % keys);
  const Tensor first = Tensor::from(firsts, {batch, queries});
  const Tensor row = greater(numbers({batch, keys}, 11), -0.5),
               pairs = greater(numbers({batch, queries, keys}, 12), -0.5);
  const Tensor causal = lower_triangle(queries, keys, keys - queries).expand({batch, 1, queries, keys});
  const Tensor from_first = less_equal(first.unsqueeze(-1), arange(keys)).unsqueeze(1);
  const Tensor of_row = row.unsqueeze(1).unsqueeze(1).expand({batch, 1, queries, keys}), of_pairs = pairs.unsqueeze(1);
  return {
      {"none", {}, ones({batch, 1, queries, keys}, DType::boolean)},
      {"causal", {.causal = true}, causal},
      {"first", {.first = first}, from_first},
      {"row", {.visible = row}, of_row},
      {"pairs", {.visible = pairs}, of_pairs},
      {"all", {.causal = true, .first = first, .visible = row}, logical_and(causal, logical_and(from_first, of_row))}};
}

TEST(Attention, EqualsTheDefinitionInValuesAndGradientsUnderEveryMask) {
  for (const Masked& mask : masks(2, 33, 40)) {
    SCOPED_TRACE(mask.name);
    const Tensor weights = numbers({2, 3, 33, 8}, 1);
    std::vector<Tensor> fused, defined;
    for (const bool by_kernel : {true, false}) {
      const Variable q = Variable::parameter(numbers({2, 3, 33, 8}, 2)),
                     k = Variable::parameter(numbers({2, 3, 40, 8}, 3));
      const Variable v = Variable::parameter(numbers({2, 3, 40, 8}, 4));
      const Variable y =
          by_kernel ? scaled_dot_product_attention(q, k, v, mask.options) : by_definition(q, k, v, mask.seen);
      sum(y * Variable(weights)).backward();
      (by_kernel ? fused : defined) = {y.value(), q.grad(), k.grad(), v.grad()};
    }
    for (size_t i = 0; i < fused.size(); ++i) EXPECT_TRUE(all_close(fused[i], defined[i], 1e-12, 1e-12)) << i;
  }
}

TEST(Attention, WeightsAreTheSoftmaxUnderEveryMask) {
  const Tensor q = numbers({2, 3, 5, 4}, 5), k = numbers({2, 3, 7, 4}, 6);
  const Tensor eye_values = eye(7, DType::float64).expand({2, 3, 7, 7});  // y_i are the weights, where hd = S
  for (const Masked& mask : masks(2, 5, 7)) {
    SCOPED_TRACE(mask.name);
    const Tensor weights = attention_weights(q, k, mask.options);
    EXPECT_TRUE(all_close(weights, by_definition(q, k, eye_values, mask.seen).value(), 1e-13, 1e-15));
  }
}

TEST(Attention, GradientsPassTheCheckUnderEveryMask) {
  for (const Masked& mask : masks(2, 4, 6)) {
    const GradcheckFunction run = [&mask](std::span<const Variable> in) {
      return scaled_dot_product_attention(in[0], in[1], in[2], mask.options);
    };
    const GradcheckResult result =
        gradcheck(run, {numbers({2, 2, 4, 3}, 7), numbers({2, 2, 6, 3}, 8), numbers({2, 2, 6, 3}, 9)});
    EXPECT_TRUE(result) << mask.name << ": " << result.message;
  }
}

TEST(Attention, TakesAnyLayoutAndLeavesHeadsSideBySide) {
  const Tensor q = numbers({2, 3, 5, 4}, 10), k = numbers({2, 3, 6, 4}, 11), v = numbers({2, 3, 6, 4}, 12);
  const Tensor y = scaled_dot_product_attention(q, k, v, {.causal = true}).value();
  EXPECT_TRUE(y.transpose(1, 2).is_contiguous());
  const auto turned = [](const Tensor& x) { return x.transpose(2, 3).clone().transpose(2, 3); };  // last axis strided
  const Variable p = Variable::parameter(turned(q));
  const Variable again = scaled_dot_product_attention(p, turned(k), turned(v), {.causal = true});
  EXPECT_TRUE(identical(again.value().contiguous(), y.contiguous()));
  again.backward(turned(ones(q.shape(), DType::float64)));
  EXPECT_TRUE(p.grad().defined());
}

TEST(Attention, GradientsOfPartsOfOneArrayAreThePartsOfOne) {
  const Variable qkv = Variable::parameter(numbers({2, 5, 3, 4, 8}, 1));
  const Variables parts = unbind(qkv, 2);
  std::vector<Tensor> arrived;
  Variables heads;
  for (const Variable& part : parts) {
    heads.push_back(transpose(part, 1, 2));
    heads.back().add_hook([&arrived](const Tensor& gradient) {
      arrived.push_back(gradient);
      return Tensor();
    });
  }
  const Variable y = scaled_dot_product_attention(heads[0], heads[1], heads[2], {.causal = true});
  y.backward(numbers(y.shape(), 2));
  ASSERT_EQ(arrived.size(), 3);
  for (const Tensor& gradient : arrived) EXPECT_EQ(gradient.storage(), arrived[0].storage());

  const Variable q = Variable::parameter(heads[0].value().clone()), k = Variable::parameter(heads[1].value().clone()),
                 v = Variable::parameter(heads[2].value().clone());
  const Variable same = scaled_dot_product_attention(q, k, v, {.causal = true});
  same.backward(numbers(y.shape(), 2));
  EXPECT_TRUE(identical(qkv.grad().select(2, 0).transpose(1, 2).contiguous(), q.grad()));
  EXPECT_TRUE(identical(qkv.grad().select(2, 1).transpose(1, 2).contiguous(), k.grad()));
  EXPECT_TRUE(identical(qkv.grad().select(2, 2).transpose(1, 2).contiguous(), v.grad()));
}

TEST(Attention, RefusesABackwardAfterItsMaskWasChanged) {
  const Variable q = Variable::parameter(numbers({1, 1, 3, 2}, 13));
  Tensor visible = ones({1, 3}, DType::boolean);
  const Variable y = scaled_dot_product_attention(q, q, q, {.visible = visible});
  visible.fill_(0);
  expect_error<ValueError>([&] { sum(y).backward(); }, {"changed in place"});
}

TEST(Attention, NamesWhatDoesNotFit) {
  const Tensor q = numbers({2, 3, 4, 5}, 14), k = numbers({2, 3, 6, 5}, 15);
  const auto attend = [](const Tensor& a, const Tensor& b, const Tensor& c, const AttentionOptions& options = {}) {
    scaled_dot_product_attention(a, b, c, options);
  };
  expect_error<ShapeError>([&] { attend(q.select(0, 0), k, k); }, {"[attention]", "[3, 4, 5]"});
  expect_error<ShapeError>([&] { attend(q, k.slice(3, {.stop = 2}), k); }, {"[B, A, S, hd]", "[2, 3, 6, 2]"});
  expect_error<ShapeError>([&] { attend(q, k, q); }, {"values", "[2, 3, 4, 5]"});
  expect_error<ValueError>([&] { attend(q, k.to(DType::float32), k); }, {"floating", "float32"});
  expect_error<ValueError>([&] { attend(q, k, k.to(DType::float32)); }, {"values", "float32"});
  expect_error<ValueError>([&] { attend(q, k, Tensor()); }, {"values", "undefined"});
  expect_error<ValueError>([&] { attend(q, Tensor(), k); }, {"undefined"});
  expect_error<ShapeError>([&] { attend(q, k, k, {.first = zeros({2, 6}, DType::int64)}); }, {"first", "[2, 6]"});
  expect_error<ValueError>([&] { attend(q, k, k, {.first = zeros({2, 4})}); }, {"first", "int64"});
  expect_error<ShapeError>([&] { attend(q, k, k, {.visible = ones({2, 4}, DType::boolean)}); }, {"visible", "[2, 4]"});
  expect_error<ValueError>([&] { attend(q, k, k, {.visible = ones({2, 6})}); }, {"visible", "bool"});
  expect_error<ValueError>([&] { attend(q, k, k, {.scale = NAN}); }, {"scale", "nan"});
}

struct Pass {
  Tensor y, dq, dk, dv;
};

Pass pass(int64_t steps, bool by_kernel) {
  const Shape shape{1, 1, steps, 64};
  const Variable q = Variable::parameter(numbers(shape, 16, DType::float32));
  const Variable k = Variable::parameter(numbers(shape, 17, DType::float32));
  const Variable v = Variable::parameter(numbers(shape, 18, DType::float32));
  const Variable y = by_kernel ? scaled_dot_product_attention(q, k, v, {.causal = true})
                               : by_definition(q, k, v, lower_triangle(steps, steps));
  y.backward(numbers(shape, 19, DType::float32));
  return {y.value(), q.grad(), k.grad(), v.grad()};
}

TEST(Attention, EqualsTheDefinitionAt1024Floats) {
  const Pass fused = pass(1024, true), defined = pass(1024, false);
  // Both round: some 100 roundings of 6e-8 of numbers near 1; dk and dv of the first keys gather 1024 of them.
  EXPECT_TRUE(all_close(fused.y, defined.y, 0, 1e-5));
  EXPECT_TRUE(all_close(fused.dq, defined.dq, 0, 1e-5));
  EXPECT_TRUE(all_close(fused.dk, defined.dk, 1e-5, 2e-5));
  EXPECT_TRUE(all_close(fused.dv, defined.dv, 1e-5, 2e-5));
}

// All blocks of memory that tensors took, in use at once or not.
uint64_t bytes_taken(int64_t steps) {
  trim_storage_cache();
  const uint64_t before = storage_stats().live_bytes;
  const Pass result = pass(steps, true);
  const StorageStats after = storage_stats();
  return after.live_bytes + after.cached_bytes - before;
}

TEST(Attention, MemoryIsLinearInTheSteps) {
  const uint64_t of_one = uint64_t{4096} * 64 * 4;  // q, and as much for each of k, v, y, dy and the gradients
  const uint64_t taken = bytes_taken(4096);
  EXPECT_LE(taken, 16 * of_one);  // 16 MiB; one matrix of scores would be 64 MiB
  EXPECT_LE(taken, 2.5 * static_cast<double>(bytes_taken(2048)));
}

#if !defined(CAROUSEL_SANITIZED)  // a sanitizer's own memory would be counted
// The most that this process has held at once. (getrusage counts what its parent held before the fork, too.)
uint64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word && word != "VmHWM:") continue;
  uint64_t kib = 0;
  status >> kib;
  return kib * 1024;
}

[[noreturn]] void exit_by_growth(int64_t steps) {
  set_threads(2);  // each has a stack and a scratch of its own
  const uint64_t before = peak_bytes();
  const Pass result = pass(steps, true);
  const uint64_t growth = peak_bytes() - before;
  const auto of_all = static_cast<uint64_t>(8 * result.y.numel()) * sizeof(float);  // inputs, outputs and gradients
  std::cerr << "grew by " << growth << " bytes, " << of_all << " of them tensors";
  // The upper bar is 64 MB; much less than the tensors would mean that nothing was measured.
  std::exit(growth >= of_all / 2 && growth < 64'000'000 ? 0 : 1);
}

// One matrix of scores would be 1 GiB. Runs in a new process, where nothing was freed that could be taken again.
TEST(AttentionDeathTest, ThePassOf16384StepsTakesLessThan64MegabytesOfTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(exit_by_growth(16384), testing::ExitedWithCode(0), "grew by");
}
#endif

}  // namespace
}  // namespace carousel
