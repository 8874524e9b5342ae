#pragma once

#include <carousel/nn/fields.h>
#include <carousel/nn/sequence_layer.h>
#include <carousel/tensor/random.h>

#include <functional>
#include <memory>
#include <string>
#include <typeinfo>
#include <vector>

namespace carousel {

/// What every layer is told, whatever its kind.
struct LayerShape {
  int64_t input_size;
  int64_t hidden_size;
  DType dtype = DType::float32;
  int64_t depth = 1;   ///< layers of the model: blocks of a deep one begin with smaller steps
  double dropout = 0;  ///< inside a residual block; recurrent layers have theirs between them (Stack)
};

/// What stands around the layers of a kind in a model.
struct ModelForm {
  enum class Norm { layer_norm, rms_norm };
  /// The layers are pre-norm blocks on a residual stream: one width all through, `norm` after the last block, and the
  /// embedding, N(0, 0.02^2), is the head as well. Without it: embedding, layers, linear head.
  bool residual = false;
  Norm norm = Norm::layer_norm;
  bool positions = false;  ///< learned positions on top of the embedding; they bound what a row can read
};

/// A configuration record of some layer kind, held behind its list of fields.
class LayerConfig {
 public:
  template <class Record>  // a Record has `Fields fields(Record&)`
  static LayerConfig of(Record record) {
    auto held = std::make_shared<Record>(std::move(record));
    return LayerConfig(held, typeid(Record), fields(*held));
  }
  /// Throws ValueError when it holds the record of another kind.
  template <class Record>
  const Record& as() const {
    check<ValueError>(*type_ == typeid(Record), "LayerConfig",
                      "must be of the kind it is used for: got another kind's");
    return *static_cast<const Record*>(record_.get());
  }
  const Fields& field_list() const { return fields_; }

 private:
  LayerConfig(std::shared_ptr<void> record, const std::type_info& type, Fields fields)
      : record_(std::move(record)), type_(&type), fields_(std::move(fields)) {}
  std::shared_ptr<void> record_;
  const std::type_info* type_;
  Fields fields_;
};

/// A kind of sequence layer: `--model NAME` in every program.
struct LayerKind {
  std::string name;
  std::string help;
  std::function<LayerConfig()> default_config;
  std::function<std::unique_ptr<SequenceLayer>(const LayerShape&, const LayerConfig&, Rng&)> make;
  ModelForm form = {};
};

/// Every kind, in the order of registry.cpp: the one place to register a layer.
const std::vector<LayerKind>& layer_kinds();
std::vector<std::string> layer_kind_names();
/// Throws ValueError listing the names, with the nearest one, when there is no such kind.
const LayerKind& layer_kind(std::string_view name);

}  // namespace carousel
