#pragma once

#include "common/options.h"

namespace carousel::examples {

/// Options of char-rnn, torch-rnn and nanoGPT that have no counterpart here.
Strangers strangers_to_train();
Strangers strangers_to_sample();

}  // namespace carousel::examples
