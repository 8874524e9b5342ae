#include "char_lm/loss_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "char_lm/report.h"
#include "common/gnuplot.h"

namespace carousel::examples {

namespace {

struct Curve {
  std::string name;
  std::string style;
  std::vector<std::pair<double, double>> points = {};  ///< step and nats
};

// What is no number, such as the null that stands for NaN, is left out, and so is a line that was cut off.
std::vector<Curve> read_curves(const std::string& log) {
  std::vector<Curve> curves = {{.name = "train", .style = "lines linecolor rgb '#4477aa'"},
                               {.name = "validation", .style = "linespoints linecolor rgb '#cc3311' pointtype 7"}};
  std::ifstream file(log);
  for (std::string line; std::getline(file, line);) {
    const auto record = nlohmann::json::parse(line, nullptr, false);
    if (!record.is_object() || !record.contains("step")) continue;
    for (Curve& curve : curves) {
      const auto loss = record.find(curve.name == "train" ? "train_loss" : "val_loss");
      if (loss != record.end() && loss->is_number()) curve.points.emplace_back(record["step"], *loss);
    }
  }
  return curves;
}

// A picture has about as many columns: more points make it no finer, only larger.
std::string block(const Curve& curve) {
  constexpr size_t most = 1000;
  const size_t count = curve.points.size(), stride = (count + most - 1) / most;
  std::string text = fmt::format("${} << END\n", curve.name);
  for (size_t i = 0; i < count; i += stride) {
    const size_t end = std::min(i + stride, count);
    double sum = 0;
    for (size_t j = i; j < end; ++j) sum += curve.points[j].second;
    text += fmt::format("{} {}\n", curve.points[end - 1].first, sum / static_cast<double>(end - i));
  }
  return text + "END\n";
}

// The range is told to both scales, so that each has round numbers of its own.
std::string axes(const std::vector<Curve>& curves, const std::vector<Baseline>& baselines) {
  double low = curves.front().points.front().second, high = low;
  const auto include = [&low, &high](double nats) {
    low = std::min(low, nats);
    high = std::max(high, nats);
  };
  for (const Curve& curve : curves) {
    for (const auto& [step, nats] : curve.points) include(nats);
  }
  for (const Baseline& baseline : baselines) include(baseline.nats);
  const double margin = 0.04 * (high - low) + 1e-6;
  low -= margin;
  high += margin;
  return fmt::format(
      "set xlabel 'steps'\nset ylabel 'nats per character'\nset y2label 'bits per character'\n"
      "set yrange [{}:{}]\nset y2range [{}:{}]\nset ytics nomirror\nset y2tics\nset grid\nset key below\n",
      low, high, bits(low), bits(high));
}

std::string script_of(const std::vector<Curve>& curves, const std::vector<Baseline>& baselines) {
  std::string text = axes(curves, baselines);
  std::string plots;
  for (const Curve& curve : curves) {
    if (curve.points.empty()) continue;
    text += block(curve);
    plots += fmt::format("{}${} with {} title '{}'", plots.empty() ? "" : ", ", curve.name, curve.style, curve.name);
  }
  for (const Baseline& baseline : baselines) {
    plots += fmt::format(", {} with lines dashtype 2 linecolor rgb '#777777' title '{}'", baseline.nats, baseline.name);
  }
  return text + "plot " + plots + "\n";
}

}  // namespace

std::string draw_losses(const std::string& folder, const std::vector<Baseline>& baselines) {
  const std::string log = folder + "/log.jsonl";
  if (!std::filesystem::is_regular_file(log)) return "";  // a device may never end
  const std::vector<Curve> curves = read_curves(log);
  if (curves.front().points.size() < 2) return "";
  const std::string script = script_of(curves, baselines);
  const std::string svg = folder + "/loss.svg", png = folder + "/loss.png";
  const std::string failure = draw("set terminal svg noenhanced size 800,500 background 'white'\n" + script, svg);
  if (!failure.empty()) return "loss curve: none, " + failure;
  const bool both = draw("set terminal pngcairo noenhanced size 800,500\n" + script, png).empty();
  return fmt::format("loss curve: {}{}", svg, both ? " and loss.png" : "");
}

}  // namespace carousel::examples
