#pragma once

#include <carousel/nn/fields.h>

#include <string>

namespace carousel::examples {

/// What a run remembers besides what it computes with; a checkpoint keeps it as JSON.
struct Progress {
  std::string text_fingerprint = {};  ///< SHA-256 of the text, in hexadecimal

  int64_t tokens = 0;     ///< read since the beginning
  int64_t log_lines = 0;  ///< of log.jsonl
  int64_t recorded_step = 0;

  // Sums since the last record.
  double losses = 0;
  double seconds = 0;  ///< of training
  int64_t updates = 0;
  int64_t new_tokens = 0;

  double last_grad_norm = 0;  ///< of the last step, which a record may wait for
  double last_lr = 0;
  double best_loss = 0;  ///< the smallest loss of a validation, of which best_step is the step; 0 and -1: none yet
  int64_t best_step = -1;
  int64_t validated_step = 0;
  int64_t validations_since_best = 0;
};
Fields fields(Progress& progress);

}  // namespace carousel::examples
