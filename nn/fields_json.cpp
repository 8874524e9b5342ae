#include <carousel/nn/fields.h>
#include <carousel/tensor/error.h>

#include <nlohmann/json.hpp>

#include <set>
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

// For an error, which is a line.
std::string shortened(const std::string& text) { return text.substr(0, 80); }

const Field& find_field(std::string_view owner, const std::string& name, const Fields& fields) {
  std::vector<std::string> names;
  for (const Field& field : fields) {
    if (field.name == name) return field;
    names.push_back(field.name);
  }
  throw FormatError(fmt::format("[{}] {}", owner, unknown_name("field", shortened(name), names)));
}

// What does not belong there is refused where it begins, so that a hostile text costs little: neither names nor
// brackets without end are kept.
Json parse_object(std::string_view owner, const std::string& text, const Fields& fields) {
  constexpr size_t most_bytes = 1 << 20;
  check<FormatError>(text.size() <= most_bytes, owner, "configuration must have at most {} bytes: got {}", most_bytes,
                     text.size());
  const std::string is_no_object = fmt::format("configuration must be a JSON object: got {}", shortened(text));
  std::set<std::string> names;
  std::string name;
  const auto look = [owner, &fields, &is_no_object, &names, &name](int depth, Json::parse_event_t event,
                                                                   const Json& parsed) {
    if (event == Json::parse_event_t::key) {
      name = parsed.get<std::string>();
      find_field(owner, name, fields);
      check<FormatError>(names.insert(name).second, owner, "{} must be given once: got it twice", name);
    }
    const bool list = event == Json::parse_event_t::array_start, object = event == Json::parse_event_t::object_start;
    check<FormatError>(depth > 0 || !list, owner, "{}", is_no_object);
    check<FormatError>(depth == 0 || !(list || object), owner, "{} must be one value: got a list or an object", name);
    return true;
  };
  Json object = Json::parse(text, look, false);
  check<FormatError>(object.is_object(), owner, "{}", is_no_object);
  return object;
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
  const Json object = parse_object(owner, json, fields);
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
