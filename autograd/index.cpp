#include <carousel/autograd/index.h>
#include <carousel/autograd/record.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/index.h>

namespace carousel {

Variable take_rows(const Variable& table, const Tensor& index) {
  return record(Op::take_rows, take_rows(table.value(), index), {table},
                [shape = table.shape(), index = Saved(index)](const Tensor& dy) {
                  return Gradients{
                      {shape, dy.dtype(), [index = index.get(), dy](Tensor& dtable) { add_rows_(dtable, index, dy); }}};
                });
}

Variable scatter_rows(const Variable& source, const Tensor& index, int64_t rows) {
  return record(Op::scatter_rows, scatter_rows(source.value(), index, rows), {source},
                [index = Saved(index)](const Tensor& dy) { return Gradients{take_rows(dy, index.get())}; });
}

Variable gather(const Variable& x, int64_t axis, const Tensor& index) {
  return record(Op::gather, gather(x.value(), axis, index), {x},
                [shape = x.shape(), axis, index = Saved(index)](const Tensor& dy) {
                  return Gradients{scatter_add(zeros(shape, dy.dtype()), axis, index.get(), dy)};
                });
}

Variable scatter_add(const Variable& x, int64_t axis, const Tensor& index, const Variable& source) {
  return record(Op::scatter_add, scatter_add(x.value(), axis, index, source.value()), {x, source},
                [axis, index = Saved(index)](const Tensor& dy) {
                  return Gradients{dy, gather(dy, axis, index.get())};
                });
}

}  // namespace carousel
