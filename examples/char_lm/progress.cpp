#include "char_lm/progress.h"

namespace carousel::examples {

Fields fields(Progress& progress) {
  return {{.name = "text_fingerprint", .target = &progress.text_fingerprint, .help = ""},
          {.name = "tokens", .target = &progress.tokens, .help = "", .minimum = 0},
          {.name = "log_lines", .target = &progress.log_lines, .help = "", .minimum = 0},
          {.name = "recorded_step", .target = &progress.recorded_step, .help = "", .minimum = 0},
          {.name = "losses", .target = &progress.losses, .help = ""},
          {.name = "seconds", .target = &progress.seconds, .help = ""},
          {.name = "updates", .target = &progress.updates, .help = "", .minimum = 0},
          {.name = "new_tokens", .target = &progress.new_tokens, .help = "", .minimum = 0},
          {.name = "last_grad_norm", .target = &progress.last_grad_norm, .help = ""},
          {.name = "last_lr", .target = &progress.last_lr, .help = ""},
          {.name = "best_loss", .target = &progress.best_loss, .help = ""},
          {.name = "best_step", .target = &progress.best_step, .help = "", .minimum = -1},
          {.name = "validated_step", .target = &progress.validated_step, .help = "", .minimum = 0},
          {.name = "validations_since_best", .target = &progress.validations_since_best, .help = "", .minimum = 0}};
}

}  // namespace carousel::examples
