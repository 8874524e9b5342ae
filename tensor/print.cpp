#include <carousel/tensor/operands.h>
#include <carousel/tensor/print.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

namespace carousel {
namespace {

/// The positions of an axis that are shown; -1 stands for those left out.
std::vector<int64_t> shown_positions(int64_t size, const PrintOptions& options, bool summarise) {
  std::vector<int64_t> positions;
  const bool cut = summarise && size > 2 * options.edge_items;
  for (int64_t i = 0; i < size; ++i) {
    if (cut && i == options.edge_items) {
      positions.push_back(-1);
      i = size - options.edge_items;
      if (i == size) break;
    }
    positions.push_back(i);
  }
  return positions;
}

/// How to write the numbers of one tensor so that they align.
struct NumberFormat {
  bool scientific = false;
  int precision = 4;
  size_t before_point = 0;  // widths of the two parts, the point counts to the second
  size_t after_point = 0;
};

std::string write_float(double value, const NumberFormat& format) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (format.scientific) return fmt::format("{:.{}e}", value, format.precision);
  std::string text = fmt::format("{:.{}f}", value, format.precision);
  if (format.precision == 0) return text + ".";
  text.erase(text.find_last_not_of('0') + 1);  // the point stays: it tells 1. from an integer
  return text;
}

size_t point_of(const std::string& text) { return std::min(text.find('.'), text.size()); }

std::string write_element(const Tensor& x, const NumberFormat& format) {
  switch (x.dtype()) {
    case DType::boolean: return x.item<bool>() ? "True" : "False";
    case DType::int64: return std::to_string(x.item<int64_t>());
    default: return write_float(x.item(), format);
  }
}

std::string pad(const std::string& text, const NumberFormat& format) {
  const size_t point = point_of(text);
  if (point == text.size()) {  // without a point (inf, integers): to the right of the whole column
    return fmt::format("{:>{}}", text, format.before_point + format.after_point);
  }
  return std::string(format.before_point - point, ' ') + text +
         std::string(format.after_point - (text.size() - point), ' ');
}

class Printer {
 public:
  Printer(const Tensor& x, const PrintOptions& options) : options_(options), summarise_(x.numel() > options.threshold) {
    format_.precision = options.precision;
    if (is_floating(x.dtype())) choose_notation(x);
    for_each_shown(x, [this](const Tensor& element) { widen(write_element(element, format_)); });
    format_.before_point = std::max(format_.before_point, widest_whole_ - std::min(widest_whole_, format_.after_point));
  }

  std::string write(const Tensor& x, int depth) const {
    if (x.rank() == 0) return pad(write_element(x, format_), format_);
    if (x.rank() == 1) return write_row(x, depth);
    // What has r axes stands one below the other with r - 1 line ends between.
    const std::string separator = std::string(x.rank() - 1, '\n') + std::string(depth + 1, ' ');
    std::string text = "[";
    for (int64_t i : shown_positions(x.size(0), options_, summarise_)) {
      if (text.size() > 1) text += separator;
      text += i < 0 ? "..." : write(x.select(0, i), depth + 1);
    }
    return text + "]";
  }

 private:
  /// Numbers side by side, as many as fit into a line with the brackets that may close behind them.
  std::string write_row(const Tensor& x, int depth) const {
    const size_t indent = static_cast<size_t>(depth) + 1;
    std::string text = "[";
    size_t column = indent;
    for (int64_t i : shown_positions(x.size(0), options_, summarise_)) {
      const std::string word = i < 0 ? "..." : write(x.select(0, i), depth + 1);
      if (text.size() > 1) {
        const bool fits = column + 1 + word.size() + indent <= static_cast<size_t>(options_.line_width);
        text += fits ? " " : "\n" + std::string(indent, ' ');
        column = fits ? column + 1 : indent;
      }
      text += word;
      column += word.size();
    }
    return text + "]";
  }

  template <class Visit>
  void for_each_shown(const Tensor& x, const Visit& visit) const {
    if (x.rank() == 0) {
      visit(x);
      return;
    }
    for (int64_t i : shown_positions(x.size(0), options_, summarise_)) {
      if (i >= 0) for_each_shown(x.select(0, i), visit);
    }
  }

  /// NumPy's rule: powers of ten when plain digits would be too many or would lose too much.
  void choose_notation(const Tensor& x) {
    double smallest = std::numeric_limits<double>::infinity(), largest = 0;
    for_each_shown(x, [&](const Tensor& element) {
      const double size = std::abs(element.item());
      if (!std::isfinite(size) || size == 0) return;
      smallest = std::min(smallest, size);
      largest = std::max(largest, size);
    });
    format_.scientific = largest >= 1e8 || (largest > 0 && (smallest < 1e-4 || largest / smallest > 1000));
  }

  void widen(const std::string& text) {
    const size_t point = point_of(text);
    if (point == text.size()) {
      widest_whole_ = std::max(widest_whole_, text.size());
    } else {
      format_.before_point = std::max(format_.before_point, point);
      format_.after_point = std::max(format_.after_point, text.size() - point);
    }
  }

  PrintOptions options_;
  bool summarise_;
  NumberFormat format_;
  size_t widest_whole_ = 0;
};

}  // namespace

std::string to_string(const Tensor& x, const PrintOptions& options) {
  if (!x.defined()) return "undefined";
  check<ValueError>(options.precision >= 0 && options.precision <= 50 && options.edge_items >= 0, "to_string",
                    "precision must be in [0, 50] and edge_items not negative: got {} and {}", options.precision,
                    options.edge_items);
  check<ValueError>(options.line_width > 0, "to_string", "line_width must be positive: got {}", options.line_width);
  if (x.numel() == 0) return "[]";
  return Printer(x, options).write(x, 0);
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) {
  if (!x.defined()) return out << "tensor(undefined)";
  const std::string prefix = "tensor(", indent(prefix.size(), ' ');  // further lines stand under the first bracket
  PrintOptions options;
  options.line_width -= static_cast<int64_t>(prefix.size());
  const std::string text = to_string(x, options);
  std::string numbers;
  for (size_t i = 0; i < text.size(); ++i) {
    numbers += text[i];
    if (text[i] == '\n' && text[i + 1] != '\n') numbers += indent;
  }
  return out << prefix << fmt::format("{}, shape={}, dtype={})", numbers, x.shape(), to_string(x.dtype()));
}

}  // namespace carousel
