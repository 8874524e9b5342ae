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

// A model and what it has read of a text.
class Reader {
 public:
  explicit Reader(const CharacterModel& model) : model_(model), state_(model.initial_state(1)) {}

  // The logits [V] behind `text`, which begins with what was read before.
  Tensor logits_after(std::span<const int64_t> text) {
    const auto end = static_cast<int64_t>(text.size());
    const int64_t context = model_.context().value_or(end);
    if (end - begin_ > context) {  // positions change for all tokens: the newest are read afresh
      begin_ = read_ = end - context;
      state_ = model_.initial_state(1);
    }
    const std::span<const int64_t> unread = text.subspan(static_cast<size_t>(read_));
    ModelResult result = model_.forward(Tensor::from(unread, {1, end - read_}), state_);
    state_ = std::move(result.state);
    read_ = end;
    return result.logits.value().select(1, -1).select(0, 0);
  }

 private:
  const CharacterModel& model_;
  State state_;
  int64_t begin_ = 0;  // the state began with this token
  int64_t read_ = 0;   // and has read up to that one
};

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
  Reader reader(model);
  std::vector<int64_t> text(prompt.begin(), prompt.end());
  while (std::ssize(text) - std::ssize(prompt) < options.length) {
    text.push_back(text.empty() ? rng.next_integer(0, vocabulary)
                                : sample(reader.logits_after(text), options.sampling, rng));
    if (options.on_token && !options.on_token(text.back())) break;
  }
  return {text.begin() + std::ssize(prompt), text.end()};
}

}  // namespace carousel
