// The program of the README: a model learns an ASCII text, and goes on writing.
//
//   stories > stories.txt && first_steps stories.txt          or: first_steps stories.txt --model gpt
//
// 1 s on two quiet cores of an AMD EPYC (Zen 5); on the stories the loss ends below 0.4 nats per character.
#include <carousel/nn/generate.h>
#include <carousel/optim/adam.h>
#include <carousel/optim/windows.h>

#include <fstream>
#include <iostream>
#include <iterator>

using namespace carousel;

int main(int argc, char** argv) {
  std::ifstream file(argc > 1 ? argv[1] : "README.md");
  const std::vector<int64_t> text(std::istreambuf_iterator<char>(file), {});
  Rng rng(1);
  const std::string kind = argc > 3 ? argv[3] : "rnn";
  CharacterModel model({.model = kind, .vocabulary_size = 128, .context = 64}, layer_kind(kind).default_config(), rng);
  AdamW optimizer(model.parameters(), {.weight_decay = 0.01});
  TrainingWindows windows(Tensor::from(text), 32, 64, WindowOrder::contiguous);  // rows, steps
  State state = model.initial_state(32);
  for (int step = 1; step <= 400; ++step) {
    const Window window = windows.next(rng);
    const LossResult result = model.loss(window.inputs, window.targets, state);
    optimizer.zero_grad();
    result.loss.backward();
    optimizer.step(4e-3);
    state = model.carry(result.state);  // truncated backpropagation: the past stays, its gradient ends
    if (step % 100 == 0) std::cout << "step " << step << ": " << result.loss.value().item() << " nats per character\n";
  }
  for (int64_t symbol : generate(model, std::vector<int64_t>{'\n'}, {}, rng)) std::cout << static_cast<char>(symbol);
}
