#include <carousel/nn/character_model.h>

#include <gtest/gtest.h>

#include "expect_error.h"

namespace carousel {
namespace {

using test::expect_error;

TEST(Registry, HoldsTheFiveWaysToRemember) {
  for (const std::string kind : {"rnn", "lstm", "gru", "ssm", "gpt", "decay"}) EXPECT_EQ(layer_kind(kind).name, kind);
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

TEST(Registry, ABlockProjectsAnInputOfAnotherWidth) {
  Rng rng(1);
  for (const std::string kind : {"ssm", "gpt"}) {
    const LayerKind& found = layer_kind(kind);
    const auto wide = found.make({.input_size = 4, .hidden_size = 4}, found.default_config(), rng);
    const auto narrow = found.make({.input_size = 3, .hidden_size = 4}, found.default_config(), rng);
    EXPECT_EQ(narrow->input_size(), 3);
    EXPECT_EQ(narrow->output_size(), 4);
    EXPECT_EQ(narrow->parameter_count(), wide->parameter_count() + 4 * 3);
    EXPECT_EQ(narrow->multiply_adds(5), wide->multiply_adds(5) + 4 * 3);
  }
}

}  // namespace
}  // namespace carousel
