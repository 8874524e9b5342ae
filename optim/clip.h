#pragma once

#include <carousel/nn/module.h>

namespace carousel {

/// Scales all gradients by limit / (norm + 1e-6) where that is below 1, so that their joint 2-norm is at most `limit`,
/// and returns the norm from before (Pascanu, Mikolov, Bengio 2013; the small addend is PyTorch's, so that losses can
/// be compared). The sum of squares is in double, so it does not overflow. A norm that is not finite is returned and no
/// gradient is touched. Throws ValueError unless `limit` is finite and > 0.
double clip_grad_norm(const std::vector<NamedParameter>& parameters, double limit);
/// The factor of clip_grad_norm for gradients of that norm: min(1, limit / (norm + 1e-6)), and 1 when the norm is not
/// finite.
double clip_factor(double norm, double limit);
/// Clamps every element of every gradient to [-limit, limit]. A gradient that holds NaN or an infinity is not touched:
/// clamped, an overflow would look like a large gradient, where the step is to be refused. Throws as clip_grad_norm.
void clip_grad_value(const std::vector<NamedParameter>& parameters, double limit);
/// The joint 2-norm of all gradients; parameters without one count nothing.
double grad_norm(const std::vector<NamedParameter>& parameters);

}  // namespace carousel
