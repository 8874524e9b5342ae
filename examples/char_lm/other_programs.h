#pragma once

#include <map>
#include <string>

namespace carousel::examples {

/// Options of char-rnn, torch-rnn and nanoGPT that have no counterpart here, and what to tell who types one.
std::map<std::string, std::string> strangers_to_train();
std::map<std::string, std::string> strangers_to_sample();

}  // namespace carousel::examples
