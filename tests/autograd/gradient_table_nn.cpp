#include "gradient_table.h"

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/matmul.h>
#include <carousel/autograd/recompute.h>
#include <carousel/autograd/reduce.h>
#include <carousel/nn/attention.h>
#include <carousel/nn/causal_conv.h>
#include <carousel/nn/functional.h>
#include <carousel/nn/gru.h>
#include <carousel/nn/linear_recurrence.h>
#include <carousel/nn/lstm.h>
#include <carousel/nn/rnn.h>
#include <carousel/nn/selective_scan.h>

namespace carousel::test {
namespace {

using Inputs = std::span<const Variable>;

void add_losses(std::vector<Row>& rows) {
  const Tensor targets = Tensor::from(std::vector<int64_t>{4, 0, 2, 1, -1, 3}, {2, 3});
  const CrossEntropyOptions ignoring{.ignore_index = -1};
  rows.push_back({Op::cross_entropy,
                  "cross_entropy_mean",
                  [targets, ignoring](Inputs in) { return cross_entropy(in[0], targets, ignoring); },
                  {random({2, 3, 5})}});
  rows.push_back({Op::cross_entropy,
                  "cross_entropy_per_position",
                  [targets, ignoring](Inputs in) { return cross_entropy_per_position(in[0], targets, ignoring); },
                  {random({2, 3, 5})}});
  rows.push_back({Op::cross_entropy,
                  "cross_entropy_offset",
                  [targets, ignoring](Inputs in) { return cross_entropy(in[0], targets, ignoring); },
                  {random({2, 3, 5}, 1e4, 1e4 + 3)}});
}

// The fused layers. Their own parameters are checked by the sequence suite; here the input, the initial state, and all
// results.
void add_recurrent(std::vector<Row>& rows) {
  Rng rng(3);
  const auto layer = std::make_shared<Rnn>(3, 4, RnnConfig{}, rng, DType::float64);
  rows.push_back({Op::rnn,
                  "rnn_input_and_state",
                  [layer](Inputs in) {
                    const SequenceResult result = layer->forward(in[0], State{{"h", in[1]}});
                    return sum(square(result.output)) + sum(result.state["h"]);
                  },
                  {random({2, 5, 3}), random({2, 4})}});
  const auto lstm = std::make_shared<Lstm>(3, 4, LstmConfig{}, rng, DType::float64);
  rows.push_back({Op::lstm,
                  "lstm_input_and_states",
                  [lstm](Inputs in) {
                    const SequenceResult result = lstm->forward(in[0], State{{"h", in[1]}, {"c", in[2]}});
                    return sum(square(result.output)) + sum(result.state["h"]) + sum(square(result.state["c"]));
                  },
                  {random({2, 5, 3}), random({2, 4}), random({2, 4})}});
  const auto gru = std::make_shared<Gru>(3, 4, GruConfig{}, rng, DType::float64);
  rows.push_back({Op::gru,
                  "gru_input_and_state",
                  [gru](Inputs in) {
                    const SequenceResult result = gru->forward(in[0], State{{"h", in[1]}});
                    return sum(square(result.output)) + sum(result.state["h"]);
                  },
                  {random({2, 5, 3}), random({2, 4})}});
  const Tensor tokens = Tensor::from(std::vector<int64_t>{2, 0, 0, 2, 3, 3, 2, 2, 0, 3}, {2, 5});  // never 1
  for (const auto& [op, kind] : {std::pair<Op, std::shared_ptr<SequenceLayer>>{Op::rnn, layer}, {Op::gru, gru}}) {
    rows.push_back({op,
                    std::string(to_string(op)) + "_table_and_state",
                    [kind = kind, tokens](Inputs in) {
                      const SequenceResult result = kind->forward_lookup({in[0], tokens}, State{{"h", in[1]}});
                      return sum(square(result.output)) + sum(result.state["h"]);
                    },
                    {random({4, 3}), random({2, 4})}});
  }
  rows.push_back(
      {Op::lstm,
       "lstm_table_and_states",
       [lstm, tokens](Inputs in) {
         const SequenceResult result = lstm->forward_lookup({in[0], tokens}, State{{"h", in[1]}, {"c", in[2]}});
         return sum(square(result.output)) + sum(result.state["h"]) + sum(square(result.state["c"]));
       },
       {random({4, 3}), random({2, 4}), random({2, 4})}});
  const auto recurrence = [](Inputs in) {
    const SequenceResult result = linear_recurrence(in[0], in[1], in[2]);
    return sum(square(result.output)) + sum(result.state["h"]);
  };
  rows.push_back({Op::linear_recurrence,
                  "linear_recurrence_one_factor",
                  recurrence,
                  {random({4}), random({2, 5, 4}), random({2, 4})}});
  rows.push_back({Op::linear_recurrence,
                  "linear_recurrence_factor_a_step",
                  recurrence,
                  {random({2, 5, 4}), random({2, 5, 4}), random({2, 4})}});
}

void add_attention(std::vector<Row>& rows) {
  const AttentionOptions masked{.causal = true,
                                .first = Tensor::from(std::vector<int64_t>{0, 1, 5, 0, 0, 2}, {2, 3}),
                                .visible = Tensor::from({1, 1, 0, 1, 1, 0, 0, 1, 1, 1}, {2, 5}, DType::boolean),
                                .scale = 0.7};
  for (const auto& [name, options] : {std::pair("attention", AttentionOptions{}), {"attention_masked", masked}}) {
    rows.push_back(
        {Op::attention,
         name,
         [options = options](Inputs in) { return scaled_dot_product_attention(in[0], in[1], in[2], options); },
         {random({2, 2, 3, 4}), random({2, 2, 5, 4}), random({2, 2, 5, 4})}});
  }
}

void add_state_space(std::vector<Row>& rows) {
  rows.push_back({Op::causal_conv,
                  "causal_conv",
                  [](Inputs in) {
                    const CausalConvResult result = causal_conv(in[0], in[1], in[2], in[3]);
                    return sum(square(result.output)) + sum(square(result.window));
                  },
                  {random({2, 5, 3}), random({2, 3, 3}), random({3, 4}), random({3})}});
  const auto scan = [](Inputs in) {
    const ScanResult result =
        selective_scan({.u = in[0], .dt = in[1], .a = in[2], .b = in[3], .c = in[4], .d = in[5]}, in[6]);
    return sum(square(result.output)) + sum(square(result.state));
  };
  // 20 steps: backward makes the states of two blocks again.
  rows.push_back({Op::selective_scan,
                  "selective_scan",
                  scan,
                  {random({2, 20, 3}), random({2, 20, 3}, 0, 1), random({3, 2}, -2, 0), random({2, 20, 2}),
                   random({2, 20, 2}), random({3}), random({2, 3, 2})}});
  rows.push_back({Op::selective_scan,
                  "selective_scan_fixed",
                  scan,
                  {random({2, 20, 3}), random({2, 20, 3}, 0, 1), random({3, 2}, -2, 0), random({3, 2}), random({3, 2}),
                   random({3}), random({2, 3, 2})}});
  rows.push_back({Op::selective_scan,
                  "selective_scan_underflow",
                  scan,
                  {random({1, 3, 2}), random({1, 3, 2}, 0.9, 1), random({2, 2}, -2000, -1000), random({1, 3, 2}),
                   random({1, 3, 2}), random({2}), random({1, 2, 2})}});
}

}  // namespace

std::vector<Row> nn_rows() {
  std::vector<Row> rows;
  rows.push_back({Op::dropout,
                  "sequence_dropout",
                  [](Inputs in) { return sequence_dropout(in[0], 0.4, 17); },
                  {random({2, 3, 4})}});
  rows.push_back({Op::layer_norm,
                  "layer_norm",
                  [](Inputs in) { return layer_norm(in[0], in[1], in[2]); },
                  {random({2, 3, 4}), random({4}), random({4})}});
  rows.push_back({Op::layer_norm,
                  "layer_norm_far_from_zero",
                  [](Inputs in) { return layer_norm(in[0], in[1], in[2]); },
                  {random({3, 8}, 999, 1001), random({8}), random({8})}});
  rows.push_back(
      {Op::rms_norm, "rms_norm", [](Inputs in) { return rms_norm(in[0], in[1]); }, {random({2, 3, 4}), random({4})}});
  add_losses(rows);
  add_recurrent(rows);
  add_attention(rows);
  add_state_space(rows);
  rows.push_back({Op::recomputed,
                  "recomputed",
                  [](Inputs in) {
                    const Variables results = recomputed(
                        [](Inputs own) -> Variables {
                          return {tanh(matmul(own[0], own[1])), exp(own[1])};
                        },
                        in);
                    return sum(square(results[0])) + sum(results[1] * results[1]);
                  },
                  {random({2, 3}), random({3, 4})}});
  return rows;
}

}  // namespace carousel::test
