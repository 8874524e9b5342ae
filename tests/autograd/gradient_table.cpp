#include "gradient_table.h"

#include <carousel/autograd/elementwise.h>
#include <carousel/tensor/compare.h>

namespace carousel::test {

Tensor random(const Shape& shape, double low, double high) {
  static uint64_t seed = 0;
  return Rng(++seed).uniform(shape, low, high, DType::float64);
}

namespace {

using Unary = Variable (*)(const Variable&);
using Binary = Variable (*)(const Variable&, const Variable&);

Row unary(Op op, Unary f, double low, double high, const std::string& suffix = "") {
  return {op,
          std::string(to_string(op)) + suffix,
          [f](std::span<const Variable> in) { return f(in[0]); },
          {random({3, 4}, low, high)}};
}

// Equal shapes, and broadcasting in both directions.
void add_binary(std::vector<Row>& rows, Op op, Binary f, double low, double high) {
  const GradcheckFunction function = [f](std::span<const Variable> in) { return f(in[0], in[1]); };
  const std::string name(to_string(op));
  rows.push_back({op, name, function, {random({2, 3}, low, high), random({2, 3}, low, high)}});
  rows.push_back({op, name + "_broadcast", function, {random({2, 1, 3}, low, high), random({4, 1}, low, high)}});
  rows.push_back({op, name + "_scalar", function, {random({}, low, high), random({2, 3}, low, high)}});
}

void add_with_number(std::vector<Row>& rows) {
  const auto row = [&](Op op, const std::string& name, Unary f) {
    rows.push_back({op, name, [f](std::span<const Variable> in) { return f(in[0]); }, {random({5}, 0.5, 2)}});
  };
  row(Op::add, "add_number", [](const Variable& x) { return 3.0 + (x + 2.0); });
  row(Op::sub, "sub_number", [](const Variable& x) { return 3.0 - x; });
  row(Op::add, "sub_a_number", [](const Variable& x) { return x - 3.0; });
  row(Op::mul, "mul_number", [](const Variable& x) { return 3.0 * (x * 2.0); });
  row(Op::div, "div_number", [](const Variable& x) { return x / 3.0; });
  row(Op::div, "number_div", [](const Variable& x) { return 3.0 / x; });
  row(Op::pow, "pow_number", [](const Variable& x) { return pow(x, 2.5); });
  row(Op::pow, "pow_zero", [](const Variable& x) { return pow(x, 0.0) + x * x; });
  row(Op::neg, "neg_operator", [](const Variable& x) { return -x; });
}

}  // namespace

std::vector<Row> elementwise_rows() {
  std::vector<Row> rows;
  add_binary(rows, Op::add, add, -2, 2);
  add_binary(rows, Op::sub, sub, -2, 2);
  add_binary(rows, Op::mul, mul, -2, 2);
  add_binary(rows, Op::div, div, 0.5, 2);
  add_binary(rows, Op::pow, pow, 0.5, 2);
  add_binary(rows, Op::maximum, maximum, -2, 2);
  add_binary(rows, Op::minimum, minimum, -2, 2);
  add_with_number(rows);

  rows.push_back(unary(Op::neg, neg, -2, 2));
  rows.push_back(unary(Op::abs, abs, 0.1, 2));
  rows.push_back(unary(Op::abs, abs, -2, -0.1, "_negative"));
  rows.push_back(unary(Op::square, square, -2, 2));
  rows.push_back(unary(Op::reciprocal, reciprocal, 0.5, 2));
  rows.push_back(unary(Op::reciprocal, reciprocal, -2, -0.5, "_negative"));
  rows.push_back(unary(Op::exp, exp, -2, 2));
  rows.push_back(unary(Op::exp, exp, -700, -300, "_underflow"));
  rows.push_back(unary(Op::expm1, expm1, -1e-3, 1e-3, "_near_zero"));
  rows.push_back(unary(Op::log, log, 0.1, 3));
  rows.push_back(unary(Op::log1p, log1p, -0.5, 2));
  rows.push_back(unary(Op::sqrt, sqrt, 0.1, 3));
  rows.push_back(unary(Op::rsqrt, rsqrt, 0.5, 3));
  rows.push_back(unary(Op::sin, sin, -3, 3));
  rows.push_back(unary(Op::cos, cos, -3, 3));
  rows.push_back(unary(Op::tanh, tanh, -2, 2));
  rows.push_back(unary(Op::tanh, tanh, 30, 800, "_saturated"));
  rows.push_back(unary(Op::sigmoid, sigmoid, -3, 3));
  rows.push_back(unary(Op::sigmoid, sigmoid, -800, -40, "_far_left"));
  rows.push_back(unary(Op::sigmoid, sigmoid, 40, 800, "_far_right"));
  rows.push_back(unary(Op::softplus, softplus, -3, 3));
  rows.push_back(unary(Op::softplus, softplus, 30, 800, "_far_right"));
  rows.push_back(unary(Op::relu, relu, 0.1, 2));
  rows.push_back(unary(Op::relu, relu, -2, -0.1, "_negative"));
  rows.push_back(unary(Op::silu, silu, -3, 3));
  rows.push_back(unary(Op::gelu, gelu, -3, 3));
  rows.push_back(unary(Op::gelu, gelu, -60, -20, "_far_left"));
  rows.push_back(unary(Op::gelu, gelu, 20, 60, "_far_right"));
  rows.push_back(unary(Op::erf, erf, -2, 2));
  rows.push_back({Op::silu_gate,
                  "silu_gate",
                  [](std::span<const Variable> in) { return silu_gate(in[0], in[1]); },
                  {random({3, 4}), random({3, 4}, -3, 3)}});

  rows.push_back({Op::clamp,
                  "clamp_inside_and_out",
                  [](std::span<const Variable> in) { return clamp(in[0], -1, 1); },
                  {Tensor::from({-3, -0.5, 0.2, 0.9, 1.5, 7}, {2, 3}, DType::float64)}});
  const Tensor condition = greater(random({2, 3}, -1, 1), 0);
  rows.push_back({Op::where,
                  "where",
                  [condition](std::span<const Variable> in) { return where(condition, in[0], in[1]); },
                  {random({2, 3}), random({2, 3})}});
  rows.push_back({Op::where,
                  "where_broadcast",
                  [condition](std::span<const Variable> in) { return where(condition, in[0], in[1]); },
                  {random({3}), random({2, 1})}});
  return rows;
}

}  // namespace carousel::test
