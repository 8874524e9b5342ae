#include "char_lm/checkpoints.h"

#include <carousel/nn/archive_payload.h>
#include <carousel/nn/digest.h>
#include <carousel/nn/saved_model.h>
#include <carousel/optim/checkpoint.h>
#include <carousel/tensor/runtime.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "common/option_values.h"

namespace carousel::examples {

namespace {

// Two lists of the same record: what `given` does not name goes over.
void take_over(const Fields& from, const Fields& to, const Given& given) {
  for (size_t i = 0; i < to.size(); ++i) {
    if (given.count(to[i].name) > 0) continue;
    std::visit([&](auto* target) { *target = *std::get<std::remove_reference_t<decltype(target)>>(from[i].target); },
               to[i].target);
  }
}

// A model is taken as it is; only its dropout may be another.
void check_sizes(TrainOptions& asked, TrainOptions& saved, const Given& given) {
  const Fields known = model_fields(saved);
  for (const Field& field : model_fields(asked)) {
    const auto typed = given.find(field.name);
    if (typed == given.end() || field.name == "dropout") continue;
    const auto own = std::find_if(known.begin(), known.end(), [&](const Field& one) { return one.name == field.name; });
    check<ValueError>(own != known.end(), typed->second, "is no option of the {} in {}", saved.model.model,
                      asked.init_from);
    check<ValueError>(value_text(*own) == value_text(field), typed->second,
                      "is {} in {}: sizes come from the checkpoint", value_text(*own), asked.init_from);
  }
}

}  // namespace

Archive open_checkpoint(std::string_view option, const std::string& path) {
  const std::string file = checkpoint_path(path);
  check<IoError>(std::filesystem::exists(file), option, "no checkpoint at {}", path);
  return load_archive(file);
}

std::string checkpoint_in(const std::string& folder) { return folder + "/checkpoint.carousel"; }

std::string best_checkpoint_in(const std::string& folder) { return folder + "/best.carousel"; }

void check_nothing_is_lost(const TrainOptions& options) {
  if (options.overwrite) return;
  const std::vector<std::string> checkpoints = checkpoints_in(options.out);
  if (checkpoints.empty()) return;
  const int64_t step = training_state(load_archive(checkpoints.front())).step;
  throw ValueError(
      fmt::format("[--out] {} holds a run at step {}: name another folder, or give --overwrite", options.out, step));
}

TrainOptions options_of(const Archive& archive) {
  TrainOptions options;
  load_fields(archive, "model/config", "model", fields(options.model));
  options.layer = layer_kind(options.model.model).default_config();
  load_fields(archive, "model/layer", options.model.model, options.layer.field_list());
  const std::string model = fields_to_json(model_fields(options));
  load_fields(archive, "training/options", "options of training", all_fields(options));
  const std::string told = fields_to_json(model_fields(options));
  check<FormatError>(told == model, "load", "{}: options of training must be of the model {}: got {}", archive.source,
                     model, told);
  return options;
}

Progress progress_of(const Archive& archive) {
  Progress progress;
  load_fields(archive, "training/progress", "progress of training", fields(progress));
  return progress;
}

std::string state_digest(const Archive& archive) {
  TrainOptions options = options_of(archive);
  Fields decisive = training_fields(options);
  std::erase_if(decisive, [](const Field& field) { return field.name == "steps"; });  // when it ends, not what it does
  Archive state;
  state.tensors = archive.tensors;
  for (const char* const name : {"model/config", "model/layer", "model/dtype", "vocabulary"}) {
    state.texts[name] = archive.text(name);
  }
  const Progress progress = progress_of(archive);
  state.texts["options"] = fields_to_json(decisive) + options.split;
  state.texts["text"] = progress.text_fingerprint;
  if (options.early_stop > 0) {
    state.texts["validations"] = fmt::format("{} {} {} {}", options.early_stop, progress.best_loss, progress.best_step,
                                             progress.validations_since_best);
  }
  return sha256_hex(encode_payload(state));
}

void start_from_checkpoint(TrainOptions& options, const Given& given) {
  options.start = std::make_shared<const Archive>(open_checkpoint("--init-from", options.init_from));
  TrainOptions saved = options_of(*options.start);
  check_sizes(options, saved, given);
  if (given.count("dropout") == 0) options.model.dropout = saved.model.dropout;
  const double dropout = options.model.dropout;
  options.model = saved.model;
  options.model.dropout = dropout;
  options.layer = saved.layer;
  // What follows from another option, follows from it again when that one is given.
  if (given.count("lr") > 0) saved.min_lr = std::numeric_limits<double>::quiet_NaN();
  if (given.count("steps") > 0) {
    saved.warmup = -1;
    saved.lr_decay_steps = 0;
  }
  take_over(data_fields(saved), data_fields(options), given);
  take_over(training_fields(saved), training_fields(options), given);
}

}  // namespace carousel::examples
