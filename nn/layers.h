#pragma once

#include <carousel/nn/module.h>
#include <carousel/tensor/random.h>

#include <optional>

namespace carousel {

/// y = x W^T + b: x [.., D] -> [.., H]. Parameters weight [H, D], bias [H], both U(-1/sqrt(D), 1/sqrt(D)), or as in
/// GPT-2 weight N(0, deviation^2) and bias 0. Throws ValueError for sizes that are not positive; forward throws
/// ShapeError or ValueError for an x that does not fit.
class Linear : public Module {
 public:
  struct Config {
    bool bias = true;
    std::optional<double> deviation = {};
  };
  Linear(int64_t input_size, int64_t output_size, const Config& config, Rng& rng, DType dtype = DType::float32);
  Variable forward(const Variable& x) const;

 private:
  Variable weight_, bias_;
};

/// Rows of weight [V, D] at int64 tokens [..] -> [.., D]. Weights N(0, deviation^2). Throws ValueError for sizes that
/// are not positive; forward throws IndexError naming token and V.
class Embedding : public Module {
 public:
  struct Config {
    double deviation = 1;
  };
  Embedding(int64_t vocabulary_size, int64_t embedding_size, const Config& config, Rng& rng,
            DType dtype = DType::float32);
  Variable forward(const Tensor& tokens) const;
  const Variable& weight() const { return weight_; }

 private:
  Variable weight_;
};

/// A normalisation of the last axis: x and the result are [.., D].
class Norm : public Module {
 public:
  virtual Variable forward(const Variable& x) const = 0;
};

/// (x - mean) / sqrt(variance + eps) * weight + bias over the last axis (Ba, Kiros, Hinton 2016), two-pass variance.
/// Parameters weight [D] = 1, bias [D] = 0, neither decayed. x and the result are [.., D]. Throws ValueError for a size
/// or an eps that is not positive; forward throws as layer_norm.
class LayerNorm : public Norm {
 public:
  struct Config {
    double eps = 1e-5;
  };
  LayerNorm(int64_t size, const Config& config, DType dtype = DType::float32);
  Variable forward(const Variable& x) const override;

 private:
  Config config_;
  Variable weight_, bias_;
};

/// x / sqrt(mean(x^2) + eps) * weight over the last axis (Zhang, Sennrich 2019). Parameter weight [D] = 1, not decayed.
/// Shapes and errors as for LayerNorm.
class RmsNorm : public Norm {
 public:
  struct Config {
    double eps = 1e-5;
  };
  RmsNorm(int64_t size, const Config& config, DType dtype = DType::float32);
  Variable forward(const Variable& x) const override;

 private:
  Config config_;
  Variable weight_;
};

/// Inverted dropout (Srivastava and others 2014): in training each element is zeroed with probability p and the rest
/// divided by 1 - p; in evaluation, the identity. x and the result have one shape, any; forward draws one number from
/// rng for the mask.
class Dropout : public Module {
 public:
  explicit Dropout(double probability);  ///< throws ValueError outside [0, 1)
  Variable forward(const Variable& x, Rng& rng) const;

 private:
  double probability_;
};

}  // namespace carousel
