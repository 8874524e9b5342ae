#include <carousel/nn/generate.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace carousel {
namespace {

void check_options(const SamplingOptions& options) {
  check<ValueError>(std::isfinite(options.temperature) && options.temperature >= 0, "sample",
                    "temperature must be finite and >= 0: got {}", options.temperature);
  check<ValueError>(options.top_k >= 0, "sample", "top_k must be >= 0: got {}", options.top_k);
}

// Positions of the `count` largest values, the largest first; of equal ones the earlier.
std::vector<size_t> largest(const std::vector<double>& values, size_t count) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&values](size_t a, size_t b) { return values[a] != values[b] ? values[a] > values[b] : a < b; });
  order.resize(count);
  return order;
}

Tensor logits_after(const CharacterModel& model, std::span<const int64_t> tokens, State& state) {
  const auto count = static_cast<int64_t>(tokens.size());
  ModelResult result = model.forward(Tensor::from(tokens, {1, count}), state);
  state = std::move(result.state);
  return result.logits.value().select(1, -1).select(0, 0);
}

}  // namespace

int64_t sample(const Tensor& logits, const SamplingOptions& options, Rng& rng) {
  check_options(options);
  check<ShapeError>(logits.rank() == 1 && logits.numel() > 0, "sample", "logits must be [V] with V > 0: got {}",
                    to_string(logits.shape()));
  const std::vector<double> values = logits.to(DType::float64).to_vector<double>();
  const bool ordered = std::none_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
  check<ValueError>(ordered, "sample", "logits must be numbers: got NaN");
  const bool limited = options.top_k > 0 && options.top_k < logits.numel();
  const std::vector<size_t> order = largest(values, limited ? static_cast<size_t>(options.top_k) : values.size());
  const double top = values[order.front()];
  check<ValueError>(std::isfinite(top), "sample", "the largest logit must be finite: got {}", top);
  if (options.temperature == 0) {
    return static_cast<int64_t>(order.front());
  }
  std::vector<double> weights(values.size(), 0);
  for (const size_t i : order) {
    weights[i] = std::exp((values[i] - top) / options.temperature);  // shifted first: no overflow, however cold
  }
  return rng.multinomial(Tensor::from(weights, {logits.numel()})).item<int64_t>();
}

std::vector<int64_t> generate(const CharacterModel& model, std::span<const int64_t> prompt,
                              const GenerateOptions& options, Rng& rng) {
  check_options(options.sampling);
  check<ValueError>(options.length >= 0, "generate", "length must be >= 0: got {}", options.length);
  const int64_t vocabulary = model.config().vocabulary_size;
  for (const int64_t token : prompt) {
    check<IndexError>(token >= 0 && token < vocabulary, "generate", "prompt tokens must be in [0, {}): got {}",
                      vocabulary, token);
  }
  const NoGrad no_grad;
  State state = model.initial_state(1);
  std::span<const int64_t> unread = prompt;
  std::vector<int64_t> tokens;
  tokens.reserve(static_cast<size_t>(options.length));  // `unread` points into it
  while (static_cast<int64_t>(tokens.size()) < options.length) {
    tokens.push_back(unread.empty() ? rng.next_integer(0, vocabulary)
                                    : sample(logits_after(model, unread, state), options.sampling, rng));
    unread = std::span<const int64_t>(&tokens.back(), 1);
    if (options.on_token && !options.on_token(tokens.back())) {
      break;
    }
  }
  return tokens;
}

}  // namespace carousel
