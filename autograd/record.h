#pragma once

#include <carousel/autograd/gradient.h>
#include <carousel/autograd/variable.h>

#include <functional>
#include <span>
#include <vector>

/// How an operation puts itself on the tape. See autograd/elementwise.cpp for the pattern: check, forward, and the
/// backward closure right beneath it with its captures written out by name.
namespace carousel {

/// A value kept for backward. It remembers the storage's version; `get` throws ValueError when the value was changed
/// in place since.
class Saved {
 public:
  Saved() = default;
  explicit Saved(Tensor value) : value_(std::move(value)), version_(value_.defined() ? value_.version() : 0) {}
  const Tensor& get() const;

 private:
  Tensor value_;
  uint64_t version_ = 0;
};

using Backward = std::function<Gradients(const Tensor& dy)>;
using BackwardMany = std::function<Gradients(std::span<const Tensor> dys)>;  ///< dy is undefined where none arrived

/// How to make an operation's result again, bit for bit, from what its backward needs anyway. For results that cost
/// little more than a pass over memory: whoever would save one for its own backward saves this instead. What it reads
/// is behind `Saved`.
using Remake = std::function<Tensor()>;

/// Whether an operation on these inputs must be recorded.
bool needs_grad(std::initializer_list<Variable> inputs);
bool needs_grad(std::span<const Variable> inputs);

/// The Variable of an operation's result. Records `backward` when an input requires a gradient and recording is on.
/// `backward` may skip the gradient of an input that needs none: input.requires_grad() tells.
Variable record(Op op, Tensor value, std::initializer_list<Variable> inputs, Backward backward, Remake remake = {});
Variable record(Op op, Tensor value, std::span<const Variable> inputs, Backward backward, Remake remake = {});
/// The same for an operation with several results: one node, one closure over all cotangents.
Variables record(Op op, std::vector<Tensor> values, std::span<const Variable> inputs, BackwardMany backward);

/// What was recorded with the operation that made x; empty when there is none.
Remake remake_of(const Variable& x);

}  // namespace carousel
