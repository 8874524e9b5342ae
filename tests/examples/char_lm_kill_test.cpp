// A run that is killed at any moment, writing included, leaves a checkpoint that loads and is not older than one
// interval. CAROUSEL_KILLS=200 examples_tests --gtest_filter=Killed.* tries more moments.
#include <carousel/nn/archive.h>
#include <carousel/optim/checkpoint.h>

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <random>

#include "char_lm_fixture.h"

namespace carousel::examples {
namespace {

class Killed : public CharLm {
 protected:
  static int kills() {
    const char* const asked = std::getenv("CAROUSEL_KILLS");
    return asked != nullptr ? std::atoi(asked) : 20;
  }
  int64_t last_logged_step() const {
    int64_t step = 0;
    std::ifstream file(out_ + "/log.jsonl");
    for (std::string line; std::getline(file, line) && !file.eof();) step = json::parse(line)["step"];
    return step;
  }
};

TEST_F(Killed, LeavesACheckpointOfTheLastInterval) {
  constexpr int64_t interval = 2;
  std::mt19937 random(1);
  std::uniform_int_distribution<int> moment(0, 60'000);  // microseconds after the run has begun: some twenty saves
  Arguments arguments = {"train",
                         "--text",
                         text_,
                         "--out",
                         out_,
                         "--steps",
                         "1000000",
                         "--rnn_size",
                         "256",
                         "--batch-size",
                         "4",
                         "--seq-length",
                         "16",
                         "--eval-interval",
                         "1000000",
                         "--log-interval",
                         "1",
                         "--checkpoint-every",
                         std::to_string(interval)};
  int64_t before = -1;
  for (int i = 0; i < kills(); ++i) {
    const auto kill_it = [&](int pid) {
      for (int wait = 0; wait < 1000 && (last_logged_step() <= before || before < 0); ++wait) {
        if (before < 0 && std::filesystem::exists(out_ + "/log.jsonl")) break;
        usleep(1000);
      }
      usleep(static_cast<useconds_t>(moment(random)));
      kill(pid, SIGKILL);
    };
    const ProgramResult result = run_built("char_lm", arguments, kill_it);
    ASSERT_NE(result.exit_code, 0) << "it would never end: " << result.out;
    ASSERT_EQ(result.err.find("char_lm: "), std::string::npos) << "no error ended it: " << result.err;
    const int64_t logged = last_logged_step();
    const int64_t saved = training_state(load_archive(out_ + "/checkpoint.carousel")).step;
    EXPECT_GE(saved, logged - interval) << "kill " << i;
    before = logged;
    arguments = {"train", "--resume", out_};
  }
  EXPECT_EQ(run({"info", out_}).exit_code, 0);
  const int64_t step = training_state(load_archive(out_ + "/checkpoint.carousel")).step;
  const ProgramResult result = run({"train", "--resume", out_, "--stop-after", std::to_string(step + 3)});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_FALSE(std::filesystem::exists(out_ + "/checkpoint.carousel.tmp")) << "the next save takes its place";
  for (size_t i = 1; i < log().size(); ++i) EXPECT_EQ(log()[i]["step"], log()[i - 1]["step"].get<int>() + 1);
}

}  // namespace
}  // namespace carousel::examples
