#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run_program.h"
#include "temporary_folder.h"

namespace carousel::examples {

using nlohmann::json;
using Arguments = std::vector<std::string>;

inline std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

/// Runs of char_lm in a folder of their own.
class CharLm : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& bytes) {
    const std::string path = folder_.path(name);
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  // A run of a second at most: `more` is added to small settings.
  ProgramResult train(const std::string& text, Arguments more = {}, const std::function<void(int)>& meanwhile = {}) {
    Arguments arguments = {"train", "--text", text, "--out", out_, "--warmup", "2", "--hidden", "16"};
    const auto given = [&more](const std::string& name) {
      return std::find(more.begin(), more.end(), name) != more.end();
    };
    // Again and again into one folder, but where a test is about that.
    if (std::filesystem::exists(out_)) more.push_back("--overwrite");
    if (!given("--embedding")) more.insert(more.end(), {"--embedding", "8"});
    if (!given("--steps")) more.insert(more.end(), {"--steps", "20"});
    if (!given("--seq-length")) more.insert(more.end(), {"--seq-length", "16"});
    if (!given("--batch-size")) more.insert(more.end(), {"--batch-size", "4"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_built("char_lm", arguments, meanwhile);
  }

  ProgramResult run(const Arguments& arguments) { return run_built("char_lm", arguments); }

  std::vector<json> log() const {
    std::vector<json> records;
    std::ifstream file(out_ + "/log.jsonl");
    for (std::string line; std::getline(file, line);) records.push_back(json::parse(line));
    return records;
  }

  static std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Every file of the run.
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(out_)) {
      files[entry.path().filename().string()] = bytes_of(entry.path().string());
    }
    return files;
  }
  std::string checkpoint() const { return out_ + "/checkpoint.carousel"; }
  // The error, which is one line behind that of the header.
  static std::string error_of(const ProgramResult& result) {
    const size_t at = result.err.rfind("char_lm: ");
    EXPECT_NE(at, std::string::npos) << result.err;
    EXPECT_EQ(result.err.find('\n', at), result.err.size() - 1) << result.err;
    return at == std::string::npos ? result.err : result.err.substr(at);
  }

  json info() { return json::parse(run({"info", out_, "--json"}).out); }

  TemporaryFolder folder_;
  std::string out_ = folder_.path("run");
  std::string text_ = write("text.txt", repeated("the cat sat on the mat and that was that\n", 100));
};

}  // namespace carousel::examples
