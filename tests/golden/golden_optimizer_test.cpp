#include <carousel/optim/make_optimizer.h>

#include "golden_file.h"

namespace carousel::test {
namespace {

struct Following {
  std::string name;  // in the file
  std::string kind;
  OptimizerConfig config;
  double lr;
};

// Settings as in the script that made the file.
std::vector<Following> followings() {
  const OptimizerConfig adam{.weight_decay = 0.1, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6};
  return {{"sgd", "sgd", {}, 0.1},
          {"sgd_momentum", "sgd", {.weight_decay = 0.01, .momentum = 0.9}, 0.1},
          {"sgd_nesterov", "sgd", {.weight_decay = 0.01, .momentum = 0.9, .nesterov = true}, 0.1},
          {"adam", "adam", adam, 0.01},
          {"adamw", "adamw", adam, 0.01},
          {"rmsprop", "rmsprop", {.alpha = 0.95}, 0.01},
          {"rmsprop_large_eps", "rmsprop", {.weight_decay = 0.1, .alpha = 0.95, .eps = 0.1}, 0.01},
          {"rmsprop_momentum", "rmsprop", {.weight_decay = 0.1, .alpha = 0.95, .momentum = 0.9}, 0.01},
          {"adagrad", "adagrad", {}, 0.1},
          {"adagrad_large_eps", "adagrad", {.weight_decay = 0.1, .eps = 0.1}, 0.1}};
}

class GoldenOptimizer : public testing::TestWithParam<std::tuple<Following, DType>> {};

TEST_P(GoldenOptimizer, SixUpdatesEndWherePyTorchs) {
  const auto& [following, dtype] = GetParam();
  const Golden golden = read_golden("optimizers.json");
  std::vector<NamedParameter> parameters;
  for (const char* name : {"matrix", "vector"}) parameters.push_back({name, leaf(golden.at(name), dtype)});
  const auto optimizer = make_optimizer(following.kind, parameters, following.config);
  for (int64_t step = 0; step < 6; ++step) {
    for (NamedParameter& parameter : parameters) {
      const bool late = parameter.name == "vector" && step < 2;
      if (!late) parameter.variable.set_grad(golden.at("grad." + parameter.name).select(0, step).to(dtype));
    }
    optimizer->step(following.lr, step == 4 ? StepLimits{.clip_norm = 0.5} : StepLimits{});
  }
  for (const NamedParameter& parameter : parameters) {
    expect_near(parameter.variable.value(), golden.at(following.name + "." + parameter.name), parameter.name);
  }
}

INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenOptimizer,
                         testing::Combine(testing::ValuesIn(followings()),
                                          testing::Values(DType::float32, DType::float64)),
                         [](const testing::TestParamInfo<std::tuple<Following, DType>>& each) {
                           return std::get<0>(each.param).name + "_" + std::string(to_string(std::get<1>(each.param)));
                         });

}  // namespace
}  // namespace carousel::test
