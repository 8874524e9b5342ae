#include "gradient_table.h"

#include <carousel/autograd/node.h>

#include <gtest/gtest.h>

#include <set>

namespace carousel::test {
namespace {

std::vector<Row> all_rows() {
  std::vector<Row> rows = elementwise_rows();
  for (std::vector<Row> more : {reduction_and_shape_rows(), nn_rows()}) {
    rows.insert(rows.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  return rows;
}

bool graph_holds(const std::shared_ptr<Node>& node, Op op) {
  if (!node) return false;
  if (node->op() == op) return true;
  for (const Edge& parent : node->parents()) {
    if (graph_holds(parent.node, op)) return true;
  }
  return false;
}

std::string row_name(const testing::TestParamInfo<Row>& row) { return row.param.name; }

class GradientTable : public testing::TestWithParam<Row> {};

TEST_P(GradientTable, AgreesWithCentralDifferences) {
  const Row& row = GetParam();
  Variables inputs;
  for (const Tensor& input : row.inputs) inputs.push_back(Variable::parameter(input));
  ASSERT_TRUE(graph_holds(row.function(inputs).node(), row.op)) << "the row does not use " << to_string(row.op);
  inputs.clear();
  const GradcheckResult result = gradcheck(row.function, row.inputs);
  EXPECT_TRUE(result) << result.message;
  EXPECT_EQ(live_nodes(), 0);
}

INSTANTIATE_TEST_SUITE_P(All, GradientTable, testing::ValuesIn(all_rows()), row_name);

TEST(GradientTableItself, HasARowForEveryOperation) {
  std::set<Op> covered;
  for (const Row& row : all_rows()) covered.insert(row.op);
  for (int i = 0; i < static_cast<int>(Op::count); ++i) {
    const Op op = static_cast<Op>(i);
    EXPECT_TRUE(op == Op::leaf || covered.contains(op)) << "no row for " << to_string(op);
  }
}

}  // namespace
}  // namespace carousel::test
