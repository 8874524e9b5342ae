#include <carousel/autograd/node.h>
#include <carousel/autograd/variable.h>
#include <carousel/tensor/compare.h>

namespace carousel {
namespace {

thread_local bool recording = true;
thread_local bool anomaly = false;

}  // namespace

NoGrad::NoGrad() : before_(recording) { recording = false; }
NoGrad::~NoGrad() { recording = before_; }
Recording::Recording() : before_(recording) { recording = true; }
Recording::~Recording() { recording = before_; }
bool grad_enabled() { return recording; }

AnomalyMode::AnomalyMode() : before_(anomaly) { anomaly = true; }
AnomalyMode::~AnomalyMode() { anomaly = before_; }

void check_anomaly(std::string_view what, Op op, const Tensor& value) {
  if (!anomaly || !value.defined() || all_finite(value)) return;
  throw ValueError(fmt::format("[anomaly] {} {} holds {}: shape {}", what, to_string(op),
                               any(isnan(value)) ? "a NaN" : "an infinity", to_string(value.shape())));
}

void check_anomaly(std::string_view what, Op op, const Gradient& gradient) {
  if (anomaly) check_anomaly(what, op, gradient.value());
}

}  // namespace carousel
