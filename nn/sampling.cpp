#include <carousel/nn/sampling.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace carousel {
namespace {

constexpr double never = -std::numeric_limits<double>::infinity();

std::vector<double> checked_logits(const Tensor& logits) {
  check<ShapeError>(logits.rank() == 1 && logits.numel() > 0, "sample", "logits must be [V] with V > 0: got {}",
                    to_string(logits.shape()));
  std::vector<double> values = logits.to(DType::float64).to_vector<double>();
  const bool ordered = std::none_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
  check<ValueError>(ordered, "sample", "logits must be numbers: got NaN");
  const double top = *std::max_element(values.begin(), values.end());
  check<ValueError>(std::isfinite(top), "sample", "the largest logit must be finite: got {}", top);
  return values;
}

void penalize(std::vector<double>& logits, double penalty, std::span<const int64_t> text) {
  std::vector<bool> seen(logits.size());
  for (const int64_t token : text) {
    check<IndexError>(token >= 0 && token < std::ssize(logits), "sample",
                      "tokens of the text must be in [0, {}): got {}", logits.size(), token);
    const auto i = static_cast<size_t>(token);
    if (seen[i]) continue;
    seen[i] = true;
    logits[i] = logits[i] > 0 ? logits[i] / penalty : logits[i] * penalty;
  }
}

std::vector<size_t> indices(size_t count) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

// Orders indices by their values, the largest first; of equal ones the earlier.
auto descending(const std::vector<double>& values) {
  return [&values](size_t a, size_t b) { return values[a] != values[b] ? values[a] > values[b] : a < b; };
}

// Gives all but the `count` largest logits no chance.
void keep_largest(std::vector<double>& logits, size_t count) {
  std::vector<size_t> order = indices(logits.size());
  const auto rest = order.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(order.begin(), rest, order.end(), descending(logits));
  for (auto i = rest; i != order.end(); ++i) logits[*i] = never;
}

void keep_nucleus(std::vector<double>& weights, double top_p) {
  std::vector<size_t> order = indices(weights.size());
  std::sort(order.begin(), order.end(), descending(weights));
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  size_t count = 0;
  for (double reached = 0; count < order.size() && reached < top_p * all; ++count) reached += weights[order[count]];
  for (size_t i = std::max<size_t>(count, 1); i < order.size(); ++i) weights[order[i]] = 0;
}

}  // namespace

void check_options(const SamplingOptions& options) {
  check<ValueError>(std::isfinite(options.temperature) && options.temperature >= 0, "sample",
                    "temperature must be finite and >= 0: got {}", options.temperature);
  check<ValueError>(options.top_k >= 0, "sample", "top_k must be >= 0: got {}", options.top_k);
  check<ValueError>(options.top_p > 0 && options.top_p <= 1, "sample", "top_p must be in (0, 1]: got {}",
                    options.top_p);
  check<ValueError>(options.min_p >= 0 && options.min_p <= 1, "sample", "min_p must be in [0, 1]: got {}",
                    options.min_p);
  check<ValueError>(std::isfinite(options.repetition_penalty) && options.repetition_penalty > 0, "sample",
                    "repetition_penalty must be finite and > 0: got {}", options.repetition_penalty);
  check<ValueError>(options.repetition_window >= 0, "sample", "repetition_window must be >= 0: got {}",
                    options.repetition_window);
}

std::vector<double> probabilities(const Tensor& logits, const SamplingOptions& options, std::span<const int64_t> text) {
  check_options(options);
  std::vector<double> values = checked_logits(logits);
  const auto window = static_cast<size_t>(options.repetition_window);
  if (options.repetition_penalty != 1) {
    penalize(values, options.repetition_penalty, window > 0 && window < text.size() ? text.last(window) : text);
  }
  if (options.temperature == 0) {
    const auto largest = std::max_element(values.begin(), values.end()) - values.begin();  // of equal ones the first
    std::vector<double> certain(values.size());
    certain[static_cast<size_t>(largest)] = 1;
    return certain;
  }
  if (options.top_k > 0 && options.top_k < std::ssize(values)) {
    keep_largest(values, static_cast<size_t>(options.top_k));
  }
  const double top = *std::max_element(values.begin(), values.end());
  std::vector<double> weights;  // the likeliest has 1: no overflow
  weights.reserve(values.size());
  for (const double value : values) weights.push_back(std::exp((value - top) / options.temperature));
  if (options.top_p < 1) keep_nucleus(weights, options.top_p);
  for (double& weight : weights) weight = weight < options.min_p ? 0 : weight;
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= all;
  return weights;
}

int64_t sample(const Tensor& logits, const SamplingOptions& options, Rng& rng, std::span<const int64_t> text) {
  const std::vector<double> weights = probabilities(logits, options, text);
  if (options.temperature == 0) return std::max_element(weights.begin(), weights.end()) - weights.begin();
  return rng.multinomial(Tensor::from(weights, {logits.numel()})).item<int64_t>();
}

double log_probability(const Tensor& logits, int64_t token) {
  const std::vector<double> values = checked_logits(logits);
  check<IndexError>(token >= 0 && token < std::ssize(values), "log_probability", "token must be in [0, {}): got {}",
                    values.size(), token);
  const double top = *std::max_element(values.begin(), values.end());
  double sum = 0;
  for (const double value : values) sum += std::exp(value - top);
  return values[static_cast<size_t>(token)] - top - std::log(sum);
}

}  // namespace carousel
