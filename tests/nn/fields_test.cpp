#include "expect_error.h"

#include <carousel/nn/fields.h>
#include <carousel/nn/registry.h>
#include <carousel/tensor/error.h>

#include <algorithm>

namespace carousel {
namespace {

using test::expect_error;

struct Record {
  int64_t count = 3;
  double rate = 0.5;
  bool bias = true;
  std::string shape = "round";
};

Fields fields(Record& record) {
  return {{.name = "count", .target = &record.count, .help = "", .minimum = 1, .maximum = 10},
          {.name = "rate", .target = &record.rate, .help = "", .minimum = 0},
          {.name = "bias", .target = &record.bias, .help = ""},
          {.name = "shape", .target = &record.shape, .help = "", .choices = {"round", "square"}}};
}

TEST(Fields, ChecksRangesAndChoices) {
  Record record;
  check_fields("record", fields(record));
  record.count = 11;
  expect_error<ValueError>([&] { check_fields("record", fields(record)); }, {"[record]", "count", "[1, 10]", "11"});
  record = {.rate = -1};
  expect_error<ValueError>([&] { check_fields("record", fields(record)); }, {"rate", "-1"});
  record = {.rate = std::numeric_limits<double>::quiet_NaN()};
  expect_error<ValueError>([&] { check_fields("record", fields(record)); }, {"rate", "nan"});
  record = {.rate = std::numeric_limits<double>::infinity()};
  expect_error<ValueError>([&] { check_fields("record", fields(record)); }, {"rate", "inf"});
  record = {.shape = "oval"};
  expect_error<ValueError>([&] { check_fields("record", fields(record)); }, {"shape", "round, square", "'oval'"});
}

TEST(Fields, JsonGoesThereAndBack) {
  Record record{.count = 7, .rate = 0.1, .bias = false, .shape = "square"};
  const std::string json = fields_to_json(fields(record));
  EXPECT_EQ(json, R"({"count":7,"rate":0.1,"bias":false,"shape":"square"})");
  Record other;
  fields_from_json("record", json, fields(other));
  EXPECT_EQ(other.count, 7);
  EXPECT_EQ(other.rate, 0.1);
  EXPECT_FALSE(other.bias);
  EXPECT_EQ(other.shape, "square");
}

TEST(Fields, JsonMayLeaveFieldsOutAndGiveWholeNumbersForReals) {
  Record record;
  fields_from_json("record", R"({"rate": 2})", fields(record));
  EXPECT_EQ(record.rate, 2);
  EXPECT_EQ(record.count, 3);
}

TEST(Fields, BadJsonIsAClearErrorAndChangesNothing) {
  Record record;
  const auto read = [&](const char* json) { fields_from_json("record", json, fields(record)); };
  expect_error<FormatError>([&] { read("[1, 2]"); }, {"[record]", "object", "[1, 2]"});
  expect_error<FormatError>([&] { read("{"); }, {"object"});
  expect_error<FormatError>([&] { read(R"({"count": 5, "ratte": 1})"); }, {"'ratte'", "did you mean 'rate'"});
  expect_error<FormatError>([&] { read(R"({"count": 5, "rate": "fast"})"); }, {"rate", "a number", "\"fast\""});
  expect_error<FormatError>([&] { read(R"({"count": 5, "bias": 1})"); }, {"bias", "true or false"});
  expect_error<FormatError>([&] { read(R"({"bias": false, "count": 2.5})"); }, {"count", "whole number", "2.5"});
  expect_error<FormatError>([&] { read(R"({"count": 18446744073709551615})"); }, {"count", "64 bits"});
  expect_error<ValueError>([&] { read(R"({"bias": false, "count": 99})"); }, {"count", "[1, 10]", "99"});
  EXPECT_EQ(record.count, 3);
  EXPECT_EQ(record.rate, 0.5);
  EXPECT_TRUE(record.bias);
}

TEST(Fields, NearestNameIsForSlipsOnly) {
  const std::vector<std::string> names = {"hidden_size", "layers", "dropout"};
  EXPECT_EQ(nearest_name("hiden_size", names), "hidden_size");
  EXPECT_EQ(nearest_name("layer", names), "layers");
  EXPECT_EQ(nearest_name("droput", names), "dropout");
  EXPECT_EQ(nearest_name("temperature", names), "");
  EXPECT_EQ(nearest_name("", names), "");
}

TEST(Fields, AnUnknownNameIsToldWhatThereIs) {
  EXPECT_EQ(join({}), "");
  EXPECT_EQ(join({"a", "b"}), "a, b");
  EXPECT_EQ(join({"a", "b", "c"}, "|"), "a|b|c");
  EXPECT_EQ(unknown_name("model", "rn", {"rnn", "lstm"}),
            "model must be one of rnn, lstm: got 'rn', did you mean 'rnn'?");
  EXPECT_EQ(unknown_name("model", "x", {"lstm"}), "model must be one of lstm: got 'x'");
}

TEST(Registry, UnknownKindListsTheKnownOnes) {
  EXPECT_EQ(layer_kind("rnn").name, "rnn");
  expect_error<ValueError>([] { layer_kind("rn"); }, {"[layer_kind]", "rnn", "'rn'", "did you mean 'rnn'"});
  expect_error<ValueError>([] { layer_kind("transformer"); }, {"'transformer'"});
}

TEST(Registry, EveryKindHasOneNameHelpAndValidDefaults) {
  std::vector<std::string> seen;
  for (const LayerKind& kind : layer_kinds()) {
    EXPECT_EQ(std::count(seen.begin(), seen.end(), kind.name), 0) << kind.name;
    seen.push_back(kind.name);
    EXPECT_FALSE(kind.help.empty()) << kind.name;
    const LayerConfig config = kind.default_config();
    check_fields(kind.name, config.field_list());
    for (const Field& field : config.field_list()) EXPECT_FALSE(field.help.empty()) << kind.name << " " << field.name;
  }
}

}  // namespace
}  // namespace carousel
