#include "expect_error.h"

#include <carousel/autograd/elementwise.h>
#include <carousel/nn/state.h>
#include <carousel/tensor/factory.h>

namespace carousel {
namespace {

TEST(State, SetReplacesOrAdds) {
  State state{{"h", ones({2, 3})}};
  state.set("c", zeros({2, 4}));
  state.set("h", zeros({2, 5}));
  ASSERT_EQ(state.values().size(), 2U);
  EXPECT_EQ(state["h"].shape(), (Shape{2, 5}));
  EXPECT_EQ(state["c"].shape(), (Shape{2, 4}));
}

TEST(State, MissingNameListsWhatThereIs) {
  const State state{{"h", ones({1, 1})}, {"c", ones({1, 1})}};
  test::expect_error<IndexError>([&] { state["g"]; }, {"[State]", "'g'", "h, c"});
  test::expect_error<IndexError>([&] { state.count("steps"); }, {"'steps'"});
}

TEST(State, DetachCutsHistoryAndKeepsNumbers) {
  const Variable leaf = Variable::parameter(ones({1, 2}));
  State state{{"h", leaf * 2.0}};
  state.set_count("steps", ones({1}, DType::int64));
  const State detached = state.detach();
  EXPECT_TRUE(state["h"].requires_grad());
  EXPECT_FALSE(detached["h"].requires_grad());
  EXPECT_EQ(detached["h"].value().to_vector<float>(), (std::vector<float>{2, 2}));
  EXPECT_EQ(detached.count("steps").item<int64_t>(), 1);
}

TEST(State, PartsGoInAndOutUnderTheirPrefix) {
  State part{{"h", ones({1, 2})}};
  part.set_count("steps", ones({1}, DType::int64));
  State whole;
  whole.set_part("1", part);
  whole.set_part("10", State{{"h", zeros({1, 3})}});
  EXPECT_EQ(whole["1.h"].shape(), (Shape{1, 2}));
  const State back = whole.part("1");
  ASSERT_EQ(back.values().size(), 1U);  // "10.h" is not part of "1"
  EXPECT_EQ(back["h"].shape(), (Shape{1, 2}));
  EXPECT_EQ(back.count("steps").item<int64_t>(), 1);
  EXPECT_TRUE(whole.part("2").values().empty());
}

}  // namespace
}  // namespace carousel
