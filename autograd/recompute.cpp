#include <carousel/autograd/recompute.h>

#include <carousel/autograd/node.h>

#include <algorithm>
#include <utility>

namespace carousel {
namespace {

// What it takes to run a function a second time.
struct Kept {
  RecomputedFunction function;
  std::vector<Saved> inputs;
  std::vector<Saved> reads;  // parameters and the like: not needed, but they must be what they were

  Variables run(std::span<const Edge> parents) const {
    for (const Saved& value : reads) value.get();
    Variables again;
    again.reserve(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      again.emplace_back(inputs[i].get(), parents[i].node, parents[i].output);
    }
    const Recording scope;
    return function(again);
  }
};

}  // namespace

Variables recomputed(RecomputedFunction function, std::span<const Variable> inputs) {
  if (!grad_enabled()) return function(inputs);
  Kept kept{.function = std::move(function), .inputs = {}, .reads = {}};
  std::vector<Edge> parents;
  for (const Variable& input : inputs) {
    kept.inputs.emplace_back(input.value());
    parents.push_back({input.node(), input.output()});
  }
  Variables results;
  {
    // Recorded as it will be in backward: an operation may compute in another way when nothing is recorded.
    Reads reads;
    results = kept.function(inputs);
    kept.reads = reads.take();
  }
  const auto has_history = [](const Variable& result) { return result.requires_grad(); };
  if (std::none_of(results.begin(), results.end(), has_history)) return results;
  const auto node =
      std::make_shared<Node>(Op::recomputed, std::move(parents),
                             [kept = std::move(kept)](std::span<const Edge> edges) { return kept.run(edges); });
  for (uint32_t i = 0; i < results.size(); ++i) {
    node->add_output(results[i].value());
    if (has_history(results[i])) results[i] = Variable(results[i].value(), node, i);
  }
  return results;
}

}  // namespace carousel
