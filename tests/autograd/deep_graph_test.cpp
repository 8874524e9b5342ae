#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/matmul.h>
#include <carousel/autograd/reduce.h>
#include <carousel/tensor/factory.h>

#include <gtest/gtest.h>
#include <pthread.h>

#include <cmath>
#include <functional>

namespace carousel {
namespace {

// Runs `body` in a thread whose stack is 256 KiB: recursion over the tape would overflow it at once.
void in_small_thread(std::function<void()> body) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 * 1024), 0);
  pthread_t thread;
  const auto run = [](void* argument) -> void* {
    (*static_cast<std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &body), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

constexpr int million = 1'000'000;

Variable long_chain(const Variable& x, int length) {  // HD-10
  Variable y = x;
  for (int i = 0; i < length; ++i) y = y + y * 1e-6;
  return y;
}

TEST(DeepGraph, AMillionStepsAreFreedWithoutBackward) {
  in_small_thread([] {
    const Variable x = Variable::parameter(ones({9}));
    { const Variable y = long_chain(x, million); }
    EXPECT_EQ(live_nodes(), 0);
  });
}

TEST(DeepGraph, AMillionStepsRunBackward) {
  in_small_thread([] {
    const Variable x = Variable::parameter(ones({9}));
    sum(long_chain(x, million)).backward();
    for (float gradient : x.grad().to_vector<float>()) EXPECT_NEAR(gradient, std::exp(1.0), 0.005 * std::exp(1.0));
    EXPECT_EQ(live_nodes(), 0);
  });
}

TEST(DeepGraph, AnElmanNetworkUnrolledOverAHundredThousandSteps) {
  in_small_thread([] {
    const Variable w = Variable::parameter(full({4, 4}, 0.1)), x = Tensor::from({0.1, 0.2, 0.3, 0.4}, {1, 4});
    Variable h = zeros({1, 4});
    for (int t = 0; t < 100'000; ++t) h = tanh(matmul(h, w) + x);
    sum(h).backward();
    // Every entry of dh/dw is a convergent sum of positive terms.
    EXPECT_GT(w.grad().select(0, 0).select(0, 0).item(), 0);
  });
  EXPECT_EQ(live_nodes(), 0);
}

}  // namespace
}  // namespace carousel
