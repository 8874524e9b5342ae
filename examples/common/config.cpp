#include "common/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "common/option_values.h"

namespace carousel::examples {

namespace {

using Json = nlohmann::ordered_json;

Config::Type type_of(const Json& value) {
  if (value.is_number()) return Config::Type::number;
  if (value.is_string()) return Config::Type::text;
  return value.is_boolean() ? Config::Type::boolean : Config::Type::other;
}

Config::Entry entry_of(const std::string& key, const Json& value) {
  const std::string json = value.dump();
  const std::string text = value.is_string() ? value.get<std::string>() : json;
  return {.key = key, .type = type_of(value), .text = text, .json = json};
}

// JSON lets a key stand twice, and the parser would quietly take the last. How many keys and brackets there may be is
// bounded: the parser searches all keys of an object for each, and dump() calls itself for each bracket.
Json parse_object(const std::string& name, std::string_view text) {
  constexpr size_t most_keys = 1000;
  constexpr int deepest = 10;
  size_t keys = 0;
  std::set<std::string> own_keys;
  const auto note_key = [&](int depth, Json::parse_event_t event, Json& parsed) {
    check_usage(depth <= deepest, name, "must hold one JSON object in which nothing is nested");
    if (event != Json::parse_event_t::key) return true;
    check_usage(++keys <= most_keys, name, "must hold at most {} keys: got more", most_keys);
    if (depth != 1) return true;
    const auto key = parsed.get<std::string>();
    check_usage(own_keys.insert(key).second, name + ": " + key, "must be given once: got it again");
    return true;
  };
  try {
    Json object = Json::parse(text, note_key);
    check_usage(object.is_object(), name, "must hold one JSON object: got {:.40}", object.dump());
    return object;
  } catch (const Json::parse_error& error) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, text.size()));
    throw UsageError(fmt::format("[{}] must hold one JSON object: line {} is not JSON", name,
                                 1 + std::count(text.begin(), end, '\n')));
  } catch (const Json::exception&) {
    throw UsageError(fmt::format("[{}] must hold one JSON object with numbers of 64 bits", name));
  }
}

// Stands in the variant's order: int64, double, bool, string.
struct Expected {
  Config::Type type;
  std::string_view words;
};
constexpr Expected expected[] = {{Config::Type::number, "a whole number"},
                                 {Config::Type::number, "a finite number"},
                                 {Config::Type::boolean, "true or false"},
                                 {Config::Type::text, "a text in quotes"}};

}  // namespace

Config::Config(std::string name, std::string_view json) : name_(std::move(name)) {
  const Json object = parse_object(name_, json);
  for (const auto& [key, value] : object.items()) {
    check_usage(key != "config", name_ + ": config", "must not stand in a configuration file itself");
    entries_.push_back(entry_of(key, value));
  }
}

Config read_config(const std::string& path) {
  constexpr size_t most = 1 << 20;
  check<IoError>(std::filesystem::exists(path), "--config", "no such file: got {}", path);
  check<IoError>(!std::filesystem::is_directory(path), "--config", "this is a folder: got {}", path);
  std::ifstream file(path, std::ios::binary);
  std::string text(most + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  check<IoError>(file.is_open() && !file.bad(), "--config", "cannot read {}: {}", path, std::strerror(errno));
  text.resize(static_cast<size_t>(file.gcount()));
  check<IoError>(text.size() <= most, "--config", "must have at most {} bytes: {} has more", most, path);
  return {path, text};
}

void set_from_config(const Config& config, const Config::Entry& entry, const Field& field) {
  const Expected& wanted = expected[field.target.index()];
  check_usage(entry.type == wanted.type, config.label(entry), "must be {}: got {}", wanted.words, entry.json);
  set_option(config.label(entry), field, entry.text);
}

std::string to_config(const Fields& fields) {
  Fields held;
  std::copy_if(fields.begin(), fields.end(), std::back_inserter(held), is_set);
  return Json::parse(fields_to_json(held)).dump(2) + "\n";
}

}  // namespace carousel::examples
