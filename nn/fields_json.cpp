#include <carousel/nn/fields.h>
#include <carousel/tensor/error.h>

#include <nlohmann/json.hpp>

#include <type_traits>

namespace carousel {
namespace {

using Json = nlohmann::ordered_json;
using Value = std::variant<int64_t, double, bool, std::string>;

Value current(const Field& field) {
  return std::visit([](const auto* target) { return Value(*target); }, field.target);
}

void assign(const Field& field, const Value& value) {
  std::visit([&value](auto* target) { *target = std::get<std::remove_reference_t<decltype(*target)>>(value); },
             field.target);
}

bool fits_int64(const Json& json) {
  return json.is_number_integer() &&
         (!json.is_number_unsigned() ||
          json.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
}

Value read(std::string_view owner, const Field& field, const Json& json) {
  const auto expect = [owner, &field, &json](bool fits, std::string_view type) {
    check<FormatError>(fits, owner, "{} must be {}: got {}", field.name, type, json.dump());
  };
  if (std::holds_alternative<int64_t*>(field.target)) {
    expect(fits_int64(json), "a whole number of 64 bits");
    return json.get<int64_t>();
  }
  if (std::holds_alternative<double*>(field.target)) {
    expect(json.is_number(), "a number");
    return json.get<double>();
  }
  if (std::holds_alternative<bool*>(field.target)) {
    expect(json.is_boolean(), "true or false");
    return json.get<bool>();
  }
  expect(json.is_string(), "a string");
  return json.get<std::string>();
}

Json parse_object(std::string_view owner, const std::string& text) {
  Json object = Json::parse(text, nullptr, false);
  check<FormatError>(object.is_object(), owner, "configuration must be a JSON object: got {}", text.substr(0, 80));
  return object;
}

const Field& find_field(std::string_view owner, const std::string& name, const Fields& fields) {
  std::vector<std::string> names;
  for (const Field& field : fields) {
    if (field.name == name) return field;
    names.push_back(field.name);
  }
  throw FormatError(fmt::format("[{}] {}", owner, unknown_name("field", name, names)));
}

}  // namespace

std::string fields_to_json(const Fields& fields) {
  Json object = Json::object();
  for (const Field& field : fields) {
    std::visit([&object, &field](const auto* target) { object[field.name] = *target; }, field.target);
  }
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void fields_from_json(std::string_view owner, const std::string& json, const Fields& fields) {
  const Json object = parse_object(owner, json);
  std::vector<std::pair<const Field*, Value>> changes;
  Fields named;
  for (const auto& [name, value] : object.items()) {
    const Field& field = find_field(owner, name, fields);
    changes.emplace_back(&field, read(owner, field, value));
    named.push_back(field);
  }
  for (auto& [field, value] : changes) {  // each change keeps what it replaced
    Value before = current(*field);
    assign(*field, value);
    value = std::move(before);
  }
  try {
    check_fields(owner, named);
  } catch (const ValueError&) {
    for (auto change = changes.rbegin(); change != changes.rend(); ++change) assign(*change->first, change->second);
    throw;
  }
}

}  // namespace carousel
