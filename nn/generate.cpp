#include <carousel/nn/generate.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace carousel {
namespace {

void check_options(const SamplingOptions& options) {
  check<ValueError>(std::isfinite(options.temperature) && options.temperature >= 0, "sample",
                    "temperature must be finite and >= 0: got {}", options.temperature);
  check<ValueError>(options.top_k >= 0, "sample", "top_k must be >= 0: got {}", options.top_k);
}

// Gives all but the `count` largest values no chance; of equal ones the earlier stay.
void keep_largest(std::vector<double>& values, size_t count) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto rest = order.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(order.begin(), rest, order.end(),
                   [&values](size_t a, size_t b) { return values[a] != values[b] ? values[a] > values[b] : a < b; });
  for (auto i = rest; i != order.end(); ++i) values[*i] = -std::numeric_limits<double>::infinity();
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
  std::vector<double> values = logits.to(DType::float64).to_vector<double>();
  const bool ordered = std::none_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
  check<ValueError>(ordered, "sample", "logits must be numbers: got NaN");
  const auto largest = std::max_element(values.begin(), values.end());  // of equal ones the first
  const double top = *largest;
  check<ValueError>(std::isfinite(top), "sample", "the largest logit must be finite: got {}", top);
  if (options.temperature == 0) return largest - values.begin();
  if (options.top_k > 0 && options.top_k < logits.numel()) keep_largest(values, static_cast<size_t>(options.top_k));
  for (double& value : values) value = std::exp((value - top) / options.temperature);  // shifted first: no overflow
  return rng.multinomial(Tensor::from(values, {logits.numel()})).item<int64_t>();
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
  while (static_cast<int64_t>(tokens.size()) < options.length) {
    tokens.push_back(unread.empty() ? rng.next_integer(0, vocabulary)
                                    : sample(logits_after(model, unread, state), options.sampling, rng));
    unread = std::span<const int64_t>(&tokens.back(), 1);  // read before the next push moves it
    if (options.on_token && !options.on_token(tokens.back())) break;
  }
  return tokens;
}

}  // namespace carousel
