#include <carousel/tensor/kernels/causal_conv.h>
#include <carousel/tensor/kernels/parallel.h>

#include <algorithm>
#include <vector>

namespace carousel::kernels {
namespace {

constexpr int64_t channel_grain = 128;

/// How many inputs before step t it sees: W - 1, or those since the last reset. t = -1: before the sequence, all.
int64_t visible(const CausalConvShape& s, int64_t t, int64_t row) {
  int64_t count = 0;
  while (count < s.width - 1 && t - count >= 0) {
    if (s.cleared(t - count, row)) return count;
    ++count;
  }
  return s.width - 1;
}

/// What one task works on: some channels of one row. Windows are turned around, [W-1, I], so that the channels of one
/// of their inputs lie side by side as those of x do.
template <class T>
class Part {
 public:
  Part(const CausalConvShape& shape, const T* x, const T* past, const T* weight, int64_t row, int64_t begin,
       int64_t end)
      : s_(shape), x_(x), past_(past), weight_(weight), row_(row), begin_(begin), count_(end - begin) {}

  void forward(const T* bias, T* y, T* window_last) const {
    const int64_t live = s_.live_steps(row_);
    for (int64_t t = 0; t < s_.steps; ++t) {
      T* const out = at(y, t);
      if (t >= live) {
        std::fill_n(out, count_, T{0});
        continue;
      }
      std::copy_n(bias + begin_, count_, out);
      for (int64_t k = s_.width - 1 - visible(s_, t, row_); k < s_.width; ++k) {
        multiply_add(weight_ + k * s_.channels + begin_, input(t - s_.width + 1 + k), out);
      }
    }
    store_window(live - 1, window_of_row(window_last));
  }

  /// `gradient` [W-1, I] holds the gradient of the window after the last step, and is led back to the one before the
  /// first. `sums` [W + 1, I] gathers dweight, turned around, and dbias.
  void backward(int64_t begin, int64_t end, const T* dy, const CausalConvGradients<T>& out, T* gradient,
                T* sums) const {
    const int64_t live = s_.live_steps(row_), n = s_.channels;
    for (int64_t t = end - 1; t >= begin; --t) {
      T* const dx = at(out.dx, t);
      const int64_t seen = (t - begin) * s_.batch * n * (s_.width - 1);
      if (t >= live) {
        std::fill_n(dx, count_, T{0});
        if (out.windows != nullptr) clear_window(window_of_row(out.windows + seen));
        if (out.dwindows != nullptr) clear_window(window_of_row(out.dwindows + seen));
        continue;
      }
      if (out.windows != nullptr) store_window(t, window_of_row(out.windows + seen));
      if (out.dwindows != nullptr) turn_window(gradient, window_of_row(out.dwindows + seen));
      if (s_.width > 1) {
        std::copy_n(gradient + (s_.width - 2) * n + begin_, count_, dx);
      } else {
        std::fill_n(dx, count_, T{0});
      }
      // An input of the window stands one place further back in the window before.
      for (int64_t k = s_.width - 2; k > 0; --k) {
        std::copy_n(gradient + (k - 1) * n + begin_, count_, gradient + k * n + begin_);
      }
      if (s_.width > 1) std::fill_n(gradient + begin_, count_, T{0});
      if (dy != nullptr) add_output(t, at(dy, t), dx, gradient, sums);
      if (!s_.cleared(t, row_)) continue;
      for (int64_t k = 0; k < s_.width - 1; ++k) std::fill_n(gradient + k * n + begin_, count_, T{0});
    }
  }

  T* window_of_row(T* windows) const { return windows + row_ * s_.channels * (s_.width - 1); }

  /// [W-1, I] to [I, W-1], of these channels.
  void turn_window(const T* turned, T* window) const {
    for (int64_t k = 0; k < s_.width - 1; ++k) {
      for (int64_t i = begin_; i < begin_ + count_; ++i) window[i * (s_.width - 1) + k] = turned[k * s_.channels + i];
    }
  }

 private:
  /// What step t contributes: of y_t = bias + sum_k weight_k input_k.
  void add_output(int64_t t, const T* dy, T* dx, T* gradient, T* sums) const {
    const int64_t n = s_.channels, last = s_.width - 1, unseen = last - visible(s_, t, row_);
    for (int64_t k = 0; k < s_.width; ++k) {
      multiply_add(weight_ + k * n + begin_, dy, k == last ? dx : gradient + k * n + begin_);
      if (k >= unseen) multiply_add(input(t - last + k), dy, sums + k * n + begin_);
    }
    T* const dbias = sums + s_.width * n + begin_;
    for (int64_t i = 0; i < count_; ++i) dbias[i] += dy[i];
  }

  /// The window after step t, [I, W-1]; t = -1: that before the sequence.
  void store_window(int64_t t, T* window) const {
    const int64_t size = s_.width - 1, seen = visible(s_, t, row_);
    for (int64_t k = 0; k < size; ++k) {
      const int64_t back = size - 1 - k;  // of step t
      const T* const from = back <= seen ? input(t - back) : nullptr;
      for (int64_t i = 0; i < count_; ++i) window[(begin_ + i) * size + k] = from != nullptr ? from[i] : 0;
    }
  }

  void clear_window(T* window) const { std::fill_n(window + begin_ * (s_.width - 1), count_ * (s_.width - 1), T{0}); }

  /// Input t, -(W-1) .. T - 1.
  const T* input(int64_t t) const { return t >= 0 ? at(x_, t) : past_ + (t + s_.width - 1) * s_.channels + begin_; }

  template <class P>
  P* at(P* sequence, int64_t t) const {
    return sequence + (t * s_.batch + row_) * s_.channels + begin_;
  }

  void multiply_add(const T* a, const T* b, T* sum) const {
    for (int64_t i = 0; i < count_; ++i) sum[i] += a[i] * b[i];
  }

  const CausalConvShape& s_;
  const T *x_, *past_, *weight_;  // past_ [W-1, I], weight_ [W, I]
  const int64_t row_, begin_, count_;
};

/// [count, rows, columns] as [count, columns, rows].
template <class T>
std::vector<T> turn(int64_t count, int64_t rows, int64_t columns, const T* x) {
  std::vector<T> turned(count * rows * columns);
  for (int64_t c = 0; c < count; ++c) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        turned[(c * columns + j) * rows + i] = x != nullptr ? x[(c * rows + i) * columns + j] : 0;
      }
    }
  }
  return turned;
}

/// Calls `body(row, begin, end)` for every row and range of channels.
template <class Body>
void for_each_part(const CausalConvShape& s, int64_t steps, const Body& body) {
  constexpr int64_t products_per_nanosecond = 4;
  const int64_t ranges = (s.channels + channel_grain - 1) / channel_grain, tasks = s.batch * ranges;
  const auto run = [&](int64_t task) {
    const int64_t begin = task % ranges * channel_grain;
    body(task / ranges, begin, std::min(begin + channel_grain, s.channels));
  };
  if (threads_for(steps * s.batch * s.channels * s.width / products_per_nanosecond) > 1 && tasks > 1) {
    parallel_tasks(tasks, run);
  } else {
    for (int64_t task = 0; task < tasks; ++task) run(task);
  }
}

}  // namespace

template <class T>
void causal_conv(const CausalConvShape& shape, const T* x, const T* window, const T* weight, const T* bias, T* y,
                 T* window_last) {
  const int64_t n = shape.channels, w = shape.width;
  const std::vector<T> past = turn(shape.batch, n, w - 1, window), turned = turn(1, n, w, weight);
  for_each_part(shape, shape.steps, [&](int64_t row, int64_t begin, int64_t end) {
    Part<T>(shape, x, past.data() + row * (w - 1) * n, turned.data(), row, begin, end).forward(bias, y, window_last);
  });
}

template <class T>
void causal_conv_backward(const CausalConvShape& shape, int64_t begin, int64_t end, const T* x, const T* window,
                          const T* weight, const T* dy, const T* dwindow_last, const CausalConvGradients<T>& out) {
  const int64_t n = shape.channels, w = shape.width, of_row = (w + 1) * n;
  const std::vector<T> past = turn(shape.batch, n, w - 1, window), turned = turn(1, n, w, weight);
  std::vector<T> gradients = turn(shape.batch, n, w - 1, dwindow_last), sums(shape.batch * of_row);
  for_each_part(shape, end - begin, [&](int64_t row, int64_t first, int64_t last) {
    const Part<T> part(shape, x, past.data() + row * (w - 1) * n, turned.data(), row, first, last);
    T* const gradient = gradients.data() + row * (w - 1) * n;
    part.backward(begin, end, dy, out, gradient, sums.data() + row * of_row);
    part.turn_window(gradient, part.window_of_row(out.dwindow));
  });
  std::fill_n(out.dweight, n * w, T{0});
  std::fill_n(out.dbias, n, T{0});
  for (int64_t row = 0; row < shape.batch; ++row) {
    const T* const sum = sums.data() + row * of_row;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t k = 0; k < w; ++k) out.dweight[i * w + k] += sum[k * n + i];
      out.dbias[i] += sum[w * n + i];
    }
  }
}

template void causal_conv(const CausalConvShape&, const float*, const float*, const float*, const float*, float*,
                          float*);
template void causal_conv(const CausalConvShape&, const double*, const double*, const double*, const double*, double*,
                          double*);
template void causal_conv_backward(const CausalConvShape&, int64_t, int64_t, const float*, const float*, const float*,
                                   const float*, const float*, const CausalConvGradients<float>&);
template void causal_conv_backward(const CausalConvShape&, int64_t, int64_t, const double*, const double*,
                                   const double*, const double*, const double*, const CausalConvGradients<double>&);

namespace plain {
namespace {

/// The windows of one channel of one row, step by step: `body(t, inputs)` sees the W inputs of step t. Returns the
/// window after the last step.
template <class T, class Body>
std::vector<T> slide(const CausalConvShape& s, const T* x, const T* window, int64_t row, int64_t i, int64_t steps,
                     const Body& body) {
  const int64_t size = s.width - 1;
  std::vector<T> inputs(window + (row * s.channels + i) * size, window + (row * s.channels + i + 1) * size);
  for (int64_t t = 0; t < steps; ++t) {
    if (s.cleared(t, row)) std::fill(inputs.begin(), inputs.end(), T{0});
    inputs.push_back(x[(t * s.batch + row) * s.channels + i]);
    body(t, inputs);
    inputs.erase(inputs.begin());
  }
  return inputs;
}

}  // namespace

template <class T>
void causal_conv(const CausalConvShape& s, const T* x, const T* window, const T* weight, const T* bias, T* y,
                 T* window_last) {
  std::fill_n(y, s.steps * s.batch * s.channels, T{0});
  for (int64_t row = 0; row < s.batch; ++row) {
    for (int64_t i = 0; i < s.channels; ++i) {
      const auto last = slide(s, x, window, row, i, s.live_steps(row), [&](int64_t t, const std::vector<T>& inputs) {
        T& out = y[(t * s.batch + row) * s.channels + i];
        out = bias[i];
        for (int64_t k = 0; k < s.width; ++k) out += weight[i * s.width + k] * inputs[k];
      });
      std::copy(last.begin(), last.end(), window_last + (row * s.channels + i) * (s.width - 1));
    }
  }
}

template <class T>
void causal_conv_backward(const CausalConvShape& s, int64_t begin, int64_t end, const T* x, const T* window,
                          const T* weight, const T* dy, const T* dwindow_last, const CausalConvGradients<T>& out) {
  const int64_t n = s.channels, w = s.width;
  std::fill_n(out.dweight, n * w, T{0});
  std::fill_n(out.dbias, n, T{0});
  for (int64_t row = 0; row < s.batch; ++row) {
    for (int64_t i = 0; i < n; ++i) {
      std::vector<std::vector<T>> inputs;
      slide(s, x, window, row, i, std::min(end, s.live_steps(row)),
            [&](int64_t, const std::vector<T>& now) { inputs.push_back(now); });
      std::vector<T> after(w - 1, T{0});
      if (dwindow_last != nullptr) std::copy_n(dwindow_last + (row * n + i) * (w - 1), w - 1, after.data());
      for (int64_t t = end - 1; t >= begin; --t) {
        const bool live = t < static_cast<int64_t>(inputs.size());
        const int64_t at = (t * s.batch + row) * n + i, seen = (((t - begin) * s.batch + row) * n + i) * (w - 1);
        for (int64_t k = 0; k < w - 1; ++k) {
          if (out.windows != nullptr) out.windows[seen + k] = live ? inputs[t][k + 1] : 0;
          if (out.dwindows != nullptr) out.dwindows[seen + k] = live ? after[k] : 0;
        }
        out.dx[at] = 0;
        if (!live) continue;
        const T cotangent = dy != nullptr ? dy[at] : 0;
        std::vector<T> all(after);
        all.insert(all.begin(), T{0});
        for (int64_t k = 0; k < w; ++k) {
          all[k] += weight[i * w + k] * cotangent;
          out.dweight[i * w + k] += inputs[t][k] * cotangent;
        }
        out.dbias[i] += cotangent;
        out.dx[at] = all.back();
        all.pop_back();
        after = s.cleared(t, row) ? std::vector<T>(w - 1, T{0}) : all;
      }
      std::copy(after.begin(), after.end(), out.dwindow + (row * n + i) * (w - 1));
    }
  }
}

template void causal_conv(const CausalConvShape&, const float*, const float*, const float*, const float*, float*,
                          float*);
template void causal_conv(const CausalConvShape&, const double*, const double*, const double*, const double*, double*,
                          double*);
template void causal_conv_backward(const CausalConvShape&, int64_t, int64_t, const float*, const float*, const float*,
                                   const float*, const float*, const CausalConvGradients<float>&);
template void causal_conv_backward(const CausalConvShape&, int64_t, int64_t, const double*, const double*,
                                   const double*, const double*, const double*, const CausalConvGradients<double>&);

}  // namespace plain
}  // namespace carousel::kernels
