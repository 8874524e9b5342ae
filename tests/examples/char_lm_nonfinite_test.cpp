// A loss or gradient that is no number: nothing is updated, and the step can be looked at.
#include <carousel/nn/archive.h>
#include <carousel/tensor/elementwise.h>

#include "char_lm_fixture.h"

namespace carousel::examples {
namespace {

class NonFinite : public CharLm {
 protected:
  // Steps so large that ssm's exp(dt A) leaves float32's range.
  Arguments too_fast_ = {"--model", "ssm", "--lr",        "90", "--grad-clip",     "0",
                         "--steps", "40",  "--embedding", "16", "--eval-interval", "1000"};

  std::string bundle() const {
    for (const auto& entry : std::filesystem::directory_iterator(out_)) {
      if (entry.path().filename().string().starts_with("nonfinite-")) return entry.path().string();
    }
    return "";
  }
};

TEST_F(NonFinite, EndsTheRunBeforeAnyWeightChanges) {
  const ProgramResult result = train(text_, too_fast_);
  EXPECT_EQ(result.exit_code, 1);
  ASSERT_NE(bundle(), "") << result.err;
  EXPECT_NE(result.err.find("char_lm replay " + bundle() + " looks for the cause"), std::string::npos) << result.err;
  EXPECT_EQ(run({"sample", out_}).exit_code, 0) << "the checkpoint from before is whole";
  EXPECT_EQ(result.err.find("-nan"), std::string::npos) << result.err;
}

TEST_F(NonFinite, ReplayTellsOverflowFromMathematics) {
  train(text_, too_fast_);
  const ProgramResult overflow = run({"replay", bundle()});
  ASSERT_EQ(overflow.exit_code, 0) << overflow.err;
  EXPECT_NE(overflow.out.find("in float32: [anomaly] the result of "), std::string::npos) << overflow.out;
  EXPECT_NE(overflow.out.find("  first seen in layers.0, "), std::string::npos) << overflow.out;
  EXPECT_NE(overflow.out.find(" at time step "), std::string::npos) << overflow.out;
  EXPECT_NE(overflow.out.find("in float64: all numbers are finite"), std::string::npos) << overflow.out;
  EXPECT_NE(overflow.out.find("\noverflow: "), std::string::npos) << overflow.out;
}

TEST_F(NonFinite, ReplayKnowsWeightsThatWereNoneBefore) {
  ASSERT_EQ(train(text_, {"--stop-after", "5"}).exit_code, 0);
  Archive checkpoint = load_archive(out_ + "/checkpoint.carousel");
  for (auto& [name, tensor] : checkpoint.tensors) {
    if (name.find("weight_hh") != std::string::npos && name.starts_with("model/")) tensor.fill_(INFINITY);
  }
  save_archive(checkpoint, out_ + "/checkpoint.carousel");
  EXPECT_EQ(run({"train", "--resume", out_}).exit_code, 1);
  const ProgramResult result = run({"replay", bundle()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("of 256 not finite"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("\nthe weights were not finite before the step\n"), std::string::npos) << result.out;
}

TEST_F(NonFinite, LeavesStepsOutWhenTold) {
  // A state that is infinite spoils the first step of the resumed run alone: the next begins from the initial state.
  ASSERT_EQ(train(text_, {"--stop-after", "5"}).exit_code, 0);
  Archive checkpoint = load_archive(out_ + "/checkpoint.carousel");
  for (auto& [name, tensor] : checkpoint.tensors) {
    if (name.starts_with("carried/value/")) tensor.fill_(NAN);
  }
  save_archive(checkpoint, out_ + "/checkpoint.carousel");
  const ProgramResult stopped = run({"train", "--resume", out_});
  EXPECT_EQ(stopped.exit_code, 1);
  EXPECT_NE(stopped.err.find("[train] loss must be finite: got nan at step 6; "), std::string::npos) << stopped.err;
  const ProgramResult skipped = run({"train", "--resume", out_, "--on-nonfinite", "skip"});
  ASSERT_EQ(skipped.exit_code, 0) << skipped.err;
  EXPECT_NE(skipped.err.find("note: [train] loss must be finite: got nan at step 6: the step is left out; "),
            std::string::npos)
      << skipped.err;
  EXPECT_EQ(info()["step"], 20);
  EXPECT_EQ(run({"sample", out_}).exit_code, 0);
}

TEST_F(NonFinite, ARunThatOnlySkipsEnds) {
  Arguments options = too_fast_;
  options.insert(options.end(), {"--on-nonfinite", "skip"});
  const ProgramResult result = train(text_, options);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("note: "), std::string::npos) << result.err;
}

TEST_F(NonFinite, ReplayRefusesWhatIsNoBundle) {
  ASSERT_EQ(train(text_).exit_code, 0);
  const ProgramResult result = run({"replay", out_});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find(out_ + "/checkpoint.carousel"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("has no text of this name: got 'bundle/"), std::string::npos) << result.err;
  EXPECT_EQ(run({"replay", "nosuch"}).err.find("[bundle] no checkpoint at nosuch") == std::string::npos, false);
}

}  // namespace
}  // namespace carousel::examples
