#include "common/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

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

// JSON lets a key stand twice, and the parser would quietly take the last.
Json parse_object(const std::string& name, std::string_view text) {
  std::vector<std::string> keys;
  const auto note_key = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth != 1 || event != Json::parse_event_t::key) return true;
    const auto key = parsed.get<std::string>();
    check_usage(std::find(keys.begin(), keys.end(), key) == keys.end(), name + ": " + key,
                "must be given once: got it again");
    keys.push_back(key);
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
