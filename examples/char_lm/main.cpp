// Trains character models, samples from them, and measures them.
//
//   char_lm train --text FILE --out DIR      a quarter of a minute on two quiet cores; without --text, on stories
//   char_lm sample DIR --length 400
//   char_lm eval DIR
//   char_lm info DIR
//   char_lm replay DIR/nonfinite-STEP.carousel
//
// The last lines of `train` give the losses and the path of the checkpoint.
#include "char_lm/options.h"
#include "char_lm/other_programs.h"
#include "common/presets.h"
#include "common/text.h"

using namespace carousel;
using namespace carousel::examples;

namespace {

Field json_field(bool& target, const std::string& remark = "") {
  return {.name = "json", .target = &target, .help = "print one JSON object" + remark};
}

constexpr const char* examples_of_training =
    "Examples:\n"
    "  char_lm train --text book.txt --out book\n"
    "  char_lm train --text book.txt --model lstm --layers 2 --dropout 0.2 --out large\n"
    "  char_lm train --config book/config.json --lr 1e-3 --out slower\n"
    "  char_lm train --resume book --steps 6000\n";

Command train_command(TrainOptions& options, const Config& config, const std::string& program) {
  Strangers strangers = strangers_to_train();
  strangers.merge(options_of_other_kinds(options));
  return {.name = "train",
          .help = "Learn a text; writes checkpoints, log.jsonl and config.json to a folder",
          .footer = kinds_of_model() + "\n" + list_of_presets() + "\n" + examples_of_training,
          .groups = option_groups(options),
          .strangers = strangers,
          .config = &config,
          .check = [&options](const Given& given) { settle(options, given); },
          .run = [&options, program] { return train(options, program); }};
}

Command eval_command(EvalOptions& options) {
  const Fields fields = {
      {.name = "text", .target = &options.text, .help = "UTF-8 file; without it, the text of training"},
      {.name = "split",
       .target = &options.split,
       .help = "as for train, and 0 for the whole text; without it, the split of training"},
      json_field(options.json)};
  return {.name = "eval",
          .help = "Measure the loss on held-out text, read once, in order",
          .positionals = {checkpoint_field(options.checkpoint)},
          .groups = {{"Evaluation", fields}},
          .check =
              [&options](const Given&) {
                if (!options.split.empty()) parse_split(options.split);
              },
          .run = [&options] { return eval(options); }};
}

Command info_command(InfoOptions& options) {
  return {.name = "info",
          .help = "Tell what a checkpoint holds",
          .positionals = {checkpoint_field(options.checkpoint)},
          .groups = {{"Output", {json_field(options.json)}}},
          .run = [&options] { return info(options); }};
}

Command replay_command(ReplayOptions& options) {
  return {.name = "replay",
          .help = "Repeat a step whose loss or gradient was not finite, and tell where that began",
          .positionals = {{.name = "bundle", .target = &options.bundle, .help = "nonfinite-STEP.carousel of a run"}},
          .run = [&options] { return replay(options); }};
}

// What --config names; it may choose the kind of model, and with that which options there are.
Config config_of(const std::vector<std::string>& arguments) {
  std::string none;
  const std::string path = peek_option(arguments, {}, config_field(none));
  return path.empty() ? Config() : read_config(path);
}

}  // namespace

int main(int argc, char** argv) {
  return report_errors("char_lm", [&] {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const Config config = !arguments.empty() && arguments.front() == "train" ? config_of(arguments) : Config();
    TrainOptions train_options = default_train_options(arguments, config);
    SampleOptions sample_options;
    EvalOptions eval_options;
    InfoOptions info_options;
    ReplayOptions replay_options;
    const Program program{
        .name = "char_lm",
        .help = "Character models: learn a text, write, measure",
        .commands = {train_command(train_options, config, argv[0]), sample_command(sample_options),
                     eval_command(eval_options), info_command(info_options), replay_command(replay_options)}};
    return run_program(program, argc, argv);
  });
}
