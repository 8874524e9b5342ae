// The program of the README: a recurrent network learns short stories, and tells one.
//
//   first_steps
//
// 1 s on two cores of an AMD EPYC (Zen 5); the loss ends below 0.4 nats per character.
#include <carousel/nn/generate.h>
#include <carousel/optim/adam.h>
#include <carousel/optim/windows.h>

#include "common/stories.h"
#include "common/text.h"

using namespace carousel;

int main() {
  const std::string text = examples::make_stories().text;
  const examples::Vocabulary vocabulary(text);
  Rng rng(1);
  CharacterModel model({.vocabulary_size = vocabulary.size()}, layer_kind("rnn").default_config(), rng);
  AdamW optimizer(model.parameters(), {.weight_decay = 0.01});
  TrainingWindows windows(vocabulary.encode(text), 32, 64, WindowOrder::contiguous);  // rows, steps
  State state = model.initial_state(32);
  for (int step = 1; step <= 400; ++step) {
    const Window window = windows.next(rng);
    const LossResult result = model.loss(window.inputs, window.targets, state);
    optimizer.zero_grad();
    result.loss.backward();
    optimizer.step(4e-3);
    state = result.state.detach();  // truncated backpropagation: the past stays, its gradient ends
    if (step % 100 == 0) fmt::print("step {}: {:.3f} nats per character\n", step, result.loss.value().item());
  }
  fmt::print("{}\n", vocabulary.decode(generate(model, vocabulary.encode("\n").to_vector<int64_t>(), {}, rng)));
}
