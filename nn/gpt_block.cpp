#include <carousel/nn/gpt_block.h>

#include <carousel/autograd/elementwise.h>
#include <carousel/nn/functional.h>
#include <carousel/nn/init.h>

namespace carousel {
namespace {

enum KeyUse : uint64_t { after_attention, after_mlp };  // of the dropout key

}  // namespace

Fields fields(GptConfig& config) {
  return {{.name = "heads",
           .target = &config.heads,
           .help = "attention heads, which share the width",
           .minimum = 1,
           .maximum = 1 << 16,
           .aliases = {"n_head"}}};
}

GptBlock::GptBlock(const LayerShape& shape, const GptConfig& config, Rng& rng)
    : dropout_(shape.dropout),
      ln_1_(shape.hidden_size, {}, shape.dtype),
      ln_2_(shape.hidden_size, {}, shape.dtype),
      attn_(shape.hidden_size, {.heads = config.heads, .depth = shape.depth}, rng, shape.dtype),
      c_fc_(shape.hidden_size, 4 * shape.hidden_size, {.deviation = init::gpt2_deviation}, rng, shape.dtype),
      c_proj_(4 * shape.hidden_size, shape.hidden_size, {.deviation = init::gpt2_residual_deviation(shape.depth)}, rng,
              shape.dtype) {
  add_child("ln_1", ln_1_);
  add_child("attn", attn_);
  add_child("ln_2", ln_2_);
  add_child("c_fc", c_fc_);
  add_child("c_proj", c_proj_);
}

int64_t GptBlock::multiply_adds(int64_t t) const { return attn_.multiply_adds(t) + 8 * output_size() * output_size(); }

Variable GptBlock::mlp(const Variable& x) const { return c_proj_.forward(gelu(c_fc_.forward(ln_2_.forward(x)))); }

// What a branch adds to the stream.
Variable GptBlock::add(const Variable& x, const Variable& branch, const std::optional<uint64_t>& key,
                       int64_t first_step) const {
  return x + dropout_in_training(*this, branch, dropout_, key, first_step);
}

Tensor GptBlock::weights(const Variable& x, const State& state, const SequenceOptions& options) const {
  check_sequence("GptBlock", *this, x, state, options);
  return attn_.weights(ln_1_.forward(zero_after_end(x, options.lengths)), state, options);
}

StepResult GptBlock::step(const Variable& x_t, const State& state, const StepOptions& options) const {
  check_step("GptBlock", *this, x_t, state, options);
  const auto& key = options.dropout_key;
  const StepResult seen = attn_.step(ln_1_.forward(x_t), state, options);
  const Variable x = add(x_t, seen.output, derived_key(key, after_attention), options.time);
  return {add(x, mlp(x), derived_key(key, after_mlp), options.time), seen.state};
}

SequenceResult GptBlock::forward(const Variable& x, const State& state, const SequenceOptions& options) const {
  check_sequence("GptBlock", *this, x, state, options);
  const auto& key = options.dropout_key;
  const Variable stream = zero_after_end(x, options.lengths);
  const SequenceResult seen = attn_.forward(ln_1_.forward(stream), state, options);
  const Variable middle = add(stream, seen.output, derived_key(key, after_attention), 0);
  const Variable y = add(middle, mlp(middle), derived_key(key, after_mlp), 0);
  return {zero_after_end(y, options.lengths), seen.state};
}

}  // namespace carousel
