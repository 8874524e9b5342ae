#pragma once

#include <carousel/tensor/random.h>

#include <span>
#include <vector>

namespace carousel {

/// How one token is drawn from logits. What is switched on applies in this order.
struct SamplingOptions {
  /// Of tokens that the text holds already: logits above 0 are divided by it, others multiplied (CTRL: Keskar et al.
  /// 2019). 1: none; > 0.
  double repetition_penalty = 1;
  int64_t repetition_window = 0;  ///< only the text's last so many tokens count; 0: all
  double temperature = 1;         ///< divides the logits; 0 takes the largest, without a draw; finite, >= 0
  int64_t top_k = 0;              ///< only the k largest may be drawn (of equal ones, the first); 0, or V and more: all
  /// Only the likeliest may be drawn that together reach this probability, the one that reaches it included (nucleus
  /// sampling: Holtzman et al. 2020). In (0, 1]; 1: all.
  double top_p = 1;
  /// Only those may be drawn that have this share of the likeliest's probability (Nguyen et al. 2024). In [0, 1]; 0:
  /// all.
  double min_p = 0;
};

/// Throws ValueError for an option outside its range.
void check_options(const SamplingOptions& options);

/// What `sample` draws from: the probability of each token after `text`, logits [V] -> V numbers that add up to 1. With
/// temperature 0 the largest logit has them all. Throws ValueError for options outside their range and for logits that
/// hold NaN, or no finite number, or +inf; ShapeError.
std::vector<double> probabilities(const Tensor& logits, const SamplingOptions& options,
                                  std::span<const int64_t> text = {});

/// One token drawn from `probabilities`. Throws as that.
int64_t sample(const Tensor& logits, const SamplingOptions& options, Rng& rng, std::span<const int64_t> text = {});

/// log softmax(logits)[token]: what the model itself thinks of a token, whatever the options. Throws IndexError.
double log_probability(const Tensor& logits, int64_t token);

}  // namespace carousel
