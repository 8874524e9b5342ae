#include "gradient_table.h"

#include <carousel/autograd/index.h>
#include <carousel/autograd/matmul.h>
#include <carousel/autograd/reduce.h>
#include <carousel/autograd/shape.h>

namespace carousel::test {
namespace {

using Inputs = std::span<const Variable>;

void add_reductions(std::vector<Row>& rows) {
  rows.push_back({Op::sum, "sum_all", [](Inputs in) { return sum(in[0]); }, {random({2, 3})}});
  rows.push_back({Op::sum, "sum_axes", [](Inputs in) { return sum(in[0], {0, -1}); }, {random({2, 3, 4})}});
  rows.push_back({Op::sum, "sum_keep", [](Inputs in) { return sum(in[0], {1}, keep_axes); }, {random({2, 3, 4})}});
  rows.push_back({Op::mean, "mean_all", [](Inputs in) { return mean(in[0]); }, {random({2, 3})}});
  rows.push_back({Op::mean, "mean_axis", [](Inputs in) { return mean(in[0], {-2}); }, {random({2, 3, 4})}});
  rows.push_back({Op::max, "max_middle", [](Inputs in) { return max(in[0], 1); }, {random({2, 5, 3})}});
  rows.push_back({Op::max, "max_keep", [](Inputs in) { return max(in[0], -1, keep_axes); }, {random({2, 5})}});
  rows.push_back({Op::max, "max_all", [](Inputs in) { return max(in[0]); }, {random({2, 5})}});
  rows.push_back({Op::min, "min_all", [](Inputs in) { return min(in[0]); }, {random({2, 5})}});
  rows.push_back({Op::min, "min_last", [](Inputs in) { return min(in[0], -1); }, {random({2, 5})}});
  rows.push_back({Op::logsumexp, "logsumexp", [](Inputs in) { return logsumexp(in[0], 0); }, {random({4, 3})}});
  rows.push_back({Op::logsumexp,
                  "logsumexp_offset",
                  [](Inputs in) { return logsumexp(in[0], 1, keep_axes); },
                  {random({2, 3}, 1e3, 1e3 + 2)}});
  rows.push_back({Op::softmax, "softmax", [](Inputs in) { return softmax(in[0], -1); }, {random({2, 5})}});
  rows.push_back({Op::softmax, "softmax_first_axis", [](Inputs in) { return softmax(in[0], 0); }, {random({3, 2})}});
  rows.push_back(
      {Op::softmax, "softmax_saturated", [](Inputs in) { return softmax(in[0], -1); }, {random({2, 5}, -500, 500)}});
  rows.push_back({Op::log_softmax, "log_softmax", [](Inputs in) { return log_softmax(in[0], 1); }, {random({2, 5})}});
  rows.push_back({Op::log_softmax,
                  "log_softmax_offset",
                  [](Inputs in) { return log_softmax(in[0], 1); },
                  {random({2, 5}, 1e3, 1e3 + 3)}});
}

void add_products(std::vector<Row>& rows) {
  const GradcheckFunction product = [](Inputs in) { return matmul(in[0], in[1]); };
  rows.push_back({Op::matmul, "matmul", product, {random({3, 4}), random({4, 2})}});
  rows.push_back({Op::matmul, "matmul_batched", product, {random({2, 3, 4}), random({2, 4, 2})}});
  rows.push_back({Op::matmul, "matmul_broadcast", product, {random({2, 1, 3, 4}), random({3, 4, 2})}});
  rows.push_back({Op::matmul, "matmul_shared_right", product, {random({2, 3, 4}), random({4, 2})}});
  rows.push_back({Op::matmul,
                  "matmul_transposed_views",
                  [](Inputs in) { return matmul(transpose(in[0], 0, 1), transpose(in[1], 0, 1)); },
                  {random({4, 3}), random({2, 4})}});
  rows.push_back({Op::matmul, "matmul_no_inner", product, {random({3, 0}), random({0, 2})}});
  const GradcheckFunction affine = [](Inputs in) { return linear(in[0], in[1], in[2]); };
  rows.push_back({Op::linear, "linear", affine, {random({2, 3, 4}), random({5, 4}), random({5})}});
  rows.push_back({Op::linear,
                  "linear_time_major",
                  [](Inputs in) { return linear(transpose(in[0], 0, 1), in[1], in[2]); },
                  {random({3, 2, 4}), random({5, 4}), random({5})}});
  rows.push_back({Op::linear,
                  "linear_no_bias",
                  [](Inputs in) { return linear(in[0], in[1], {}); },
                  {random({3, 4}), random({5, 4})}});
}

void add_views(std::vector<Row>& rows) {
  rows.push_back({Op::slice, "slice_steps", [](Inputs in) { return slice(in[0], -1, {-5, -1, 2}); }, {random({2, 6})}});
  rows.push_back({Op::select, "select", [](Inputs in) { return select(in[0], 1, -1); }, {random({2, 3, 2})}});
  rows.push_back({Op::transpose, "transpose", [](Inputs in) { return transpose(in[0], 0, -1); }, {random({2, 3, 4})}});
  rows.push_back({Op::permute, "permute", [](Inputs in) { return permute(in[0], {2, 0, 1}); }, {random({2, 3, 4})}});
  rows.push_back({Op::unsqueeze, "unsqueeze", [](Inputs in) { return unsqueeze(in[0], -1); }, {random({2, 3})}});
  rows.push_back({Op::squeeze, "squeeze", [](Inputs in) { return squeeze(in[0], 1); }, {random({2, 1, 3})}});
  rows.push_back({Op::expand, "expand", [](Inputs in) { return expand(in[0], {4, 2, 3}); }, {random({2, 1})}});
  rows.push_back({Op::to, "to_double", [](Inputs in) { return to(in[0], DType::float64); }, {random({2, 3})}});
  rows.push_back({Op::reshape, "reshape", [](Inputs in) { return reshape(in[0], {3, -1}); }, {random({2, 6})}});
  rows.push_back({Op::reshape,
                  "reshape_of_a_transpose",
                  [](Inputs in) { return reshape(transpose(in[0], 0, 1), {6}); },
                  {random({2, 3})}});
}

void add_joins(std::vector<Row>& rows) {
  rows.push_back({Op::concatenate,
                  "concatenate",
                  [](Inputs in) { return concatenate(in, -1); },
                  {random({2, 3}), random({2, 0}), random({2, 2})}});
  rows.push_back({Op::stack, "stack", [](Inputs in) { return stack(in, 1); }, {random({2, 3}), random({2, 3})}});
  rows.push_back({Op::split,
                  "split_two_of_three_used",
                  [](Inputs in) {
                    const std::vector<int64_t> sizes{2, 1, 3};
                    const Variables parts = split(in[0], sizes, 1);
                    const std::vector<Variable> used{parts[2], parts[0]};
                    return concatenate(used, 1);
                  },
                  {random({2, 6})}});
  rows.push_back({Op::unbind,
                  "unbind",
                  [](Inputs in) {
                    const Variables steps = unbind(in[0], 1);
                    const std::vector<Variable> used{steps[2], steps[0], steps[2]};
                    return stack(used, 0);
                  },
                  {random({2, 3, 2})}});
}

void add_indexing(std::vector<Row>& rows) {
  const Tensor repeated = Tensor::from(std::vector<int64_t>{2, 0, 2, 1, 2, 0}, {2, 3});
  rows.push_back({Op::take_rows,
                  "take_rows_repeated",
                  [repeated](Inputs in) { return take_rows(in[0], repeated); },
                  {random({4, 2})}});
  rows.push_back({Op::scatter_rows,
                  "scatter_rows_repeated",
                  [repeated](Inputs in) { return scatter_rows(in[0], repeated, 4); },
                  {random({2, 3, 2})}});
  rows.push_back(
      {Op::gather, "gather_repeated", [repeated](Inputs in) { return gather(in[0], 1, repeated); }, {random({2, 4})}});
  rows.push_back({Op::scatter_add,
                  "scatter_add_repeated",
                  [repeated](Inputs in) { return scatter_add(in[0], 1, repeated, in[1]); },
                  {random({2, 4}), random({2, 3})}});
}

}  // namespace

std::vector<Row> reduction_and_shape_rows() {
  std::vector<Row> rows;
  add_reductions(rows);
  add_products(rows);
  add_views(rows);
  add_joins(rows);
  add_indexing(rows);
  return rows;
}

}  // namespace carousel::test
