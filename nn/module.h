#pragma once

#include <carousel/autograd/variable.h>

#include <string>
#include <utility>
#include <vector>

namespace carousel {

struct NamedParameter {
  std::string name;  ///< path from the root module: "stack.layers.0.weight_ih"
  Variable variable;
  bool decay = true;  ///< whether weight decay may reach it: matrices, yes; biases, gains and state parameters, no
};

struct NamedBuffer {
  std::string name;
  Tensor tensor;
};

/// A part of a model: owns parameters (trained) and buffers (saved, not trained) under names, and has child modules.
/// Parameters are only ever changed in place, so handles to them stay good. Not copyable.
class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  std::vector<NamedParameter> parameters() const;  ///< own ones first, then the children's, in order of registration
  std::vector<NamedBuffer> buffers() const;
  int64_t parameter_count() const;
  void zero_grad();

  void train(bool on = true);  ///< dropout on; children follow
  void eval() { train(false); }
  bool training() const { return training_; }

 protected:
  enum class Decay { no, yes };
  /// Registers `value` as a trained parameter. Throws ValueError on a name that is taken or holds a dot.
  Variable add_parameter(std::string name, Tensor value, Decay decay);
  Tensor add_buffer(std::string name, Tensor value);
  /// Registers a child that the derived class owns.
  void add_child(std::string name, Module& child);

 private:
  void collect(const std::string& prefix, std::vector<NamedParameter>& parameters,
               std::vector<NamedBuffer>& buffers) const;
  std::vector<NamedParameter> parameters_;
  std::vector<NamedBuffer> buffers_;
  std::vector<std::pair<std::string, Module*>> children_;
  bool training_ = true;
};

}  // namespace carousel
