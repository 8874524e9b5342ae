// Where a run goes on: which checkpoint it takes, and which options it may change.
#include <carousel/optim/checkpoint.h>

#include <algorithm>
#include <filesystem>

#include "char_lm/checkpoints.h"
#include "common/option_values.h"

namespace carousel::examples {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kept_prefix = "step-", suffix = ".carousel";

std::string kept_name(int64_t step) { return fmt::format("{}{:012}{}", kept_prefix, step, suffix); }

// Not so what a person named, who may call a copy step-good.carousel.
bool is_kept_name(const std::string& name) {
  return name.size() == kept_name(0).size() && name.starts_with(kept_prefix) && name.ends_with(suffix) &&
         name.find_first_not_of("0123456789", kept_prefix.size()) == name.size() - suffix.size();
}

// Checkpoints kept by number, the newest first.
std::vector<std::string> kept_checkpoints(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code unreadable;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, unreadable)) {
    const std::string name = entry.path().filename().string();
    if (is_kept_name(name)) paths.push_back(entry.path().string());
  }
  std::sort(paths.rbegin(), paths.rend());  // their numbers have equally many digits
  return paths;
}

void remove_file(const std::string& path) {
  std::error_code error;
  fs::remove(path, error);
  check<IoError>(!error, "archive", "cannot remove {}: {}", path, error.message());
}

// The newest checkpoint that can be read.
Archive newest_good(const std::string& folder) {
  std::string failures;
  for (const std::string& path : checkpoints_in(folder)) {
    try {
      Archive archive = load_archive(path);
      training_state(archive);
      if (!failures.empty()) tell(fmt::format("note: {}; going on from {}", failures, path));
      return archive;
    } catch (const Error& error) {
      failures += (failures.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  throw IoError(fmt::format("[--resume] no checkpoint that can be read in {}{}", folder,
                            failures.empty() ? "" : ": " + failures));
}

// What a run may be told anew when it goes on: how far, how often, how loud, and on how many threads.
bool may_change(const std::string& name) {
  static const std::vector<std::string> free = {
      "steps",      "threads",    "eval_interval", "log_interval", "checkpoint_every",
      "keep_last",  "early_stop", "on_save_error", "on_nonfinite", "recompute",
      "stop_after", "time_limit", "token_budget",  "resume",       "force"};
  return std::find(free.begin(), free.end(), name) != free.end();
}

}  // namespace

std::vector<std::string> checkpoints_in(const std::string& folder) {
  std::vector<std::string> paths = kept_checkpoints(folder);
  paths.insert(paths.begin(), checkpoint_in(folder));
  paths.push_back(best_checkpoint_in(folder));
  std::erase_if(paths, [](const std::string& path) { return !fs::exists(path); });
  return paths;
}

void keep_last_only(const std::string& folder) {
  for (const std::string& path : checkpoints_in(folder)) {
    if (path != checkpoint_in(folder)) remove_file(path);
  }
}

void keep_as(const std::string& path, const std::string& other) {
  const std::string temporary = other + ".tmp";
  std::error_code error;
  fs::remove(temporary, error);
  fs::create_hard_link(path, temporary, error);  // the next checkpoint takes the name away, not the file
  if (error) fs::copy_file(path, temporary, fs::copy_options::overwrite_existing, error);
  if (!error) fs::rename(temporary, other, error);
  check<IoError>(!error, "archive", "cannot write {}: {}", other, error.message());
}

void keep_latest(const std::string& folder, int64_t step, int64_t count) {
  keep_as(checkpoint_in(folder), folder + "/" + kept_name(step));
  const std::vector<std::string> kept = kept_checkpoints(folder);
  for (size_t i = static_cast<size_t>(count); i < kept.size(); ++i) remove_file(kept[i]);
}

std::string folder_to_resume(const std::vector<std::string>& arguments, const Config& config) {
  std::string none, out = TrainOptions().out;
  std::string folder = peek_option(arguments, config, {.name = "resume", .target = &none, .help = ""});
  if (!folder.empty()) return folder;
  if (peek_option(arguments, config, {.name = "init_from", .target = &none, .help = ""}) != "resume") return "";
  return peek_option(arguments, config,
                     {.name = "out", .target = &out, .help = "", .aliases = {"out_dir", "checkpoint_dir"}});
}

TrainOptions resumed_options(const std::string& folder) {
  TrainOptions options;
  if (fs::exists(folder)) {
    const auto start = std::make_shared<const Archive>(newest_good(folder));
    options = options_of(*start);
    options.start = start;
  }
  options.resume = options.out = folder;
  return options;
}

void check_resumed(TrainOptions& options, const Given& given) {
  check<IoError>(options.start != nullptr, "--resume", "no such folder: {}", options.resume);
  TrainOptions saved = options_of(*options.start);
  options.init_from = saved.init_from;  // where nanoGPT's word "resume" was
  Fields known = all_fields(saved);
  const Fields asked = all_fields(options);
  for (const auto& [name, typed] : given) {
    if (may_change(name) || name == "text" || name == "out" || name == "init_from" || name == "n_embd") continue;
    const auto is_it = [&wanted = name](const Field& field) { return field.name == wanted; };
    const auto own = std::find_if(known.begin(), known.end(), is_it);
    check<ValueError>(own != known.end(), typed, "has no meaning with --resume");
    const std::string value = value_text(*std::find_if(asked.begin(), asked.end(), is_it));
    check<ValueError>(value_text(*own) == value, typed, "is {} in {}, and a resumed run keeps it: got {}",
                      value_text(*own), options.resume, value);
  }
  check<ValueError>(fs::weakly_canonical(options.out) == fs::weakly_canonical(options.resume), "--out",
                    "must be the folder that is resumed: got {} and {}", options.out, options.resume);
  const int64_t step = training_state(*options.start).step;
  check<ValueError>(options.steps >= step, "--steps", "must be at least the {} of {}: got {}", step, options.resume,
                    options.steps);
  if (options.threads != saved.threads) {
    tell(fmt::format("note: {} threads, not the {} before: what follows may differ in last bits", options.threads,
                     saved.threads));
  }
}

}  // namespace carousel::examples
