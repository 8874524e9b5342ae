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

// Indices, the largest value first; of equal ones the earlier.
std::vector<size_t> descending(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&values](size_t a, size_t b) { return values[a] > values[b]; });
  return order;
}

void keep_first(std::vector<double>& values, const std::vector<size_t>& order, size_t count, double otherwise) {
  for (size_t i = count; i < order.size(); ++i) values[order[i]] = otherwise;
}

// exp(values - largest): the likeliest has 1, so that nothing overflows.
std::vector<double> relative_to_top(const std::vector<double>& values) {
  const double top = *std::max_element(values.begin(), values.end());
  std::vector<double> weights;
  for (const double value : values) weights.push_back(std::exp(value - top));
  return weights;
}

void keep_nucleus(std::vector<double>& weights, double top_p) {
  const std::vector<size_t> order = descending(weights);
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  size_t count = 0;
  for (double reached = 0; count < order.size() && reached < top_p * all; ++count) reached += weights[order[count]];
  keep_first(weights, order, std::max<size_t>(count, 1), 0);
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
    keep_first(values, descending(values), static_cast<size_t>(options.top_k), never);
  }
  const double top = *std::max_element(values.begin(), values.end());
  for (double& value : values) value = (value - top) / options.temperature;  // shifted first: no overflow
  std::vector<double> weights = relative_to_top(values);
  if (options.top_p < 1) keep_nucleus(weights, options.top_p);
  for (double& weight : weights) weight = weight < options.min_p ? 0 : weight;  // the likeliest has 1
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
