#include <carousel/nn/character_model.h>
#include <carousel/optim/adam.h>
#include <carousel/optim/clip.h>

#include <algorithm>

#include "golden_file.h"

namespace carousel::test {
namespace {

struct Training {
  std::string kind;
  std::string layer;  // its options as JSON
  CharacterModelConfig config;
};

// Five symbols; widths as in the script that made the files.
std::vector<Training> trainings() {
  const CharacterModelConfig recurrent{.vocabulary_size = 5, .embedding_size = 3, .hidden_size = 4};
  const CharacterModelConfig residual{
      .vocabulary_size = 5, .embedding_size = 4, .hidden_size = 4, .layers = 2, .context = 6};
  return {{"rnn", "{}", recurrent},
          {"lstm", "{}", recurrent},
          {"gru", "{}", recurrent},
          {"gpt", R"({"heads": 2})", residual},
          {"ssm", R"({"state_size": 3})", residual}};
}

// "stack.layers.0.weight_ih" is "layer.weight_ih_l0" of PyTorch's recurrent modules; other names begin without
// "stack.".
std::string golden_name(const std::string& path) {
  if (path.rfind("stack.", 0) != 0) return path;
  const std::string last = path.substr(path.find_last_of('.') + 1);
  const bool of_rnn = last.ends_with("_ih") || last.ends_with("_hh");
  return of_rnn ? "layer." + last + "_l0" : path.substr(std::string("stack.").size());
}

class GoldenTraining : public testing::TestWithParam<std::tuple<Training, DType>> {};

TEST_P(GoldenTraining, TenAdamWLossesAreThoseOfPyTorch) {
  const auto& [training, dtype] = GetParam();
  const Golden golden = read_golden(training.kind + "_training.json");
  Rng rng(0);
  CharacterModelConfig config = training.config;
  config.model = training.kind;
  const LayerConfig layer = layer_kind(training.kind).default_config();
  fields_from_json(training.kind, training.layer, layer.field_list());
  CharacterModel model(config, layer, rng, dtype);
  set_parameters(model, golden, golden_name);
  AdamW optimizer(model.parameters(), {.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1});
  const Tensor tokens = golden.at("tokens").to(DType::int64);
  State state = model.initial_state(2);
  for (int64_t step = 0; step < 10; ++step) {
    const Tensor inputs = tokens.slice(1, {6 * step, 6 * step + 6});
    const Tensor targets = tokens.slice(1, {6 * step + 1, 6 * step + 7});
    const LossResult result = model.loss(inputs, targets, state);
    optimizer.zero_grad();
    result.loss.backward();
    const double norm = clip_grad_norm(model.parameters(), 0.5);
    optimizer.step(0.05);
    state = model.carry(result.state);
    expect_near(result.loss.value(), golden.at("losses").select(0, step), "loss " + std::to_string(step));
    // Relative where it is above 1: rounding grows with the norm, and from step to step.
    const double expected_norm = golden.at("norms").select(0, step).item();
    EXPECT_NEAR(norm, expected_norm, tolerance(dtype) * std::max(1.0, expected_norm)) << "step " << step;
  }
  for (const NamedParameter& parameter : model.parameters()) {
    const Tensor ours = parameter.variable.value(), theirs = golden.at("final." + golden_name(parameter.name));
    // The softmax does not depend on the keys' bias: its gradient is rounding alone, which Adam makes large.
    const bool has_keys = parameter.name.ends_with("c_attn.bias");
    for (const int64_t third : has_keys ? std::vector<int64_t>{0, 2} : std::vector<int64_t>{0}) {
      const int64_t size = has_keys ? ours.size(0) / 3 : ours.size(0);
      const Slice part{.start = third * size, .stop = (third + 1) * size};
      expect_near(ours.slice(0, part), theirs.slice(0, part), parameter.name);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenTraining,
                         testing::Combine(testing::ValuesIn(trainings()),
                                          testing::Values(DType::float32, DType::float64)),
                         [](const testing::TestParamInfo<std::tuple<Training, DType>>& each) {
                           return std::get<0>(each.param).kind + "_" + std::string(to_string(std::get<1>(each.param)));
                         });

}  // namespace
}  // namespace carousel::test
