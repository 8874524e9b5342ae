#include <carousel/nn/character_model.h>

#include <gtest/gtest.h>

#include <algorithm>

#include "expect_error.h"

namespace carousel {
namespace {

using test::expect_error;

TEST(Registry, HoldsTheFiveWaysToRemember) {
  const std::vector<std::string> recurrent = recurrent_kind_names();
  for (const std::string kind : {"rnn", "lstm", "gru", "ssm", "gpt", "decay"}) {
    EXPECT_EQ(layer_kind(kind).name, kind);
    const bool is_block = kind == "ssm" || kind == "gpt";
    EXPECT_EQ(std::count(recurrent.begin(), recurrent.end(), kind), is_block ? 0 : 1) << kind;
  }
  expect_error<ValueError>([] { layer_kind("lsmt"); }, {"[layer_kind]", "lsmt", "did you mean 'lstm'"});
}

TEST(Registry, RefusesTheConfigurationOfAnotherKind) {
  Rng rng(1);
  for (const LayerKind& kind : layer_kinds()) {
    for (const LayerKind& other : layer_kinds()) {
      if (kind.name == other.name) continue;
      const LayerShape shape{.input_size = 4, .hidden_size = 4};
      expect_error<ValueError>([&] { kind.make(shape, other.default_config(), rng); }, {"[LayerConfig]", "kind"});
    }
  }
}

TEST(Registry, BlocksAreAsWideAsTheirInput) {
  Rng rng(1);
  for (const std::string kind : {"ssm", "gpt"}) {
    const LayerKind& found = layer_kind(kind);
    expect_error<ValueError>([&] { found.make({.input_size = 3, .hidden_size = 4}, found.default_config(), rng); },
                             {kind.c_str(), "3 and 4"});
  }
}

}  // namespace
}  // namespace carousel
