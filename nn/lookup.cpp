#include <carousel/nn/lookup.h>

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/index.h>
#include <carousel/tensor/error.h>
#include <carousel/tensor/factory.h>

namespace carousel {
namespace {

// Which of `symbols` rows are read: bool [V].
Tensor read_rows(const Tensor& tokens, const Tensor& lengths, int64_t symbols) {
  Tensor read = zeros({symbols}, DType::boolean);
  const Tensor rows = tokens.contiguous(), ends = lengths.defined() ? lengths.contiguous() : lengths;
  const auto* token = rows.data<int64_t>();
  bool* const is_read = read.mutable_data<bool>();
  for (int64_t b = 0; b < rows.size(0); ++b) {
    const int64_t end = ends.defined() ? ends.data<int64_t>()[b] : rows.size(1);
    for (int64_t t = 0; t < rows.size(1); ++t, ++token) {
      check<IndexError>(*token >= 0 && *token < symbols, "Lookup", "tokens must be in [0, {}): got {} at [{}, {}]",
                        symbols, *token, b, t);
      if (t < end) is_read[*token] = true;
    }
  }
  return read;
}

}  // namespace

Variable Lookup::rows() const { return take_rows(table, tokens); }

Variable Lookup::zero_unread(const Tensor& lengths) const {
  const Tensor read = read_rows(tokens, lengths, table.size(0));
  return where(read.unsqueeze(1), table, Variable(zeros({}, table.dtype())));
}

}  // namespace carousel
