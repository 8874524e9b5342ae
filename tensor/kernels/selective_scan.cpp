#include <carousel/tensor/kernels/selective_scan.h>

#include <carousel/tensor/kernels/parallel.h>
#include <carousel/tensor/kernels/selective_scan_task.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

namespace carousel::kernels {
namespace {

/// Zeros that begin at a cache line.
template <class T>
class Aligned {
 public:
  explicit Aligned(int64_t n) : memory_(n + scan_lanes<T>) {
    constexpr size_t cache_line = 64;
    void* begin = memory_.data();
    size_t bytes = memory_.size() * sizeof(T);
    data_ = static_cast<T*>(std::align(cache_line, bytes - cache_line, begin, bytes));
  }
  T* data() const { return data_; }

 private:
  std::vector<T> memory_;
  T* data_;
};

/// How the channels are shared out, and the tables that the tasks of a range of channels have in common.
template <class T>
class Ranges {
 public:
  Ranges(const ScanShape& shape, const ScanInputs<T>& in)
      : s_(shape),
        in_(in),
        count_((shape.channels + scan_channels - 1) / scan_channels),
        table_(shape.states * scan_channels),
        tables_(count_ * table_ * (shape.fixed ? 3 : 1)) {
    turn(in.a, tables_.data());
    if (!shape.fixed) return;
    turn(in.b, tables_.data() + count_ * table_);
    turn(in.c, tables_.data() + 2 * count_ * table_);
  }

  int64_t count() const { return count_; }
  int64_t table() const { return table_; }
  int64_t tasks() const { return s_.batch * count_; }

  ScanTask<T> task(int64_t number) const {
    const int64_t range = number % count_, first = range * scan_channels;
    const T* const a = tables_.data() + range * table_;
    return {.shape = s_,
            .in = in_,
            .row = number / count_,
            .first = first,
            .count = std::min(scan_channels, s_.channels - first),
            .a = a,
            .b = s_.fixed ? a + count_ * table_ : nullptr,
            .c = s_.fixed ? a + 2 * count_ * table_ : nullptr};
  }

  /// Calls `body(number of a task, scratch)` for every task.
  template <class Body>
  void for_each_task(const Body& body) const {
    constexpr int64_t states_per_nanosecond = 2;
    const int64_t work = s_.steps * s_.batch * s_.channels * s_.states / states_per_nanosecond;
    const int64_t shares = std::clamp<int64_t>(threads_for(work), 1, std::max<int64_t>(tasks(), 1));
    const int64_t size = (ScanScratch<T>::size(s_.states) + scan_lanes<T> - 1) / scan_lanes<T> * scan_lanes<T>;
    const Aligned<T> memory(shares * size);
    const auto run = [&](int64_t share) {
      const ScanScratch<T> scratch = ScanScratch<T>::in(memory.data() + share * size, s_.states);
      for (int64_t i = tasks() * share / shares; i < tasks() * (share + 1) / shares; ++i) body(i, scratch);
    };
    if (shares == 1) return run(0);
    parallel_tasks(shares, run);
  }

  /// Adds a table of some task to x [I, N].
  void add_table(int64_t number, const T* table, T* x) const {
    const ScanTask<T> to = task(number);
    for (int64_t i = 0; i < to.count; ++i) {
      for (int64_t n = 0; n < s_.states; ++n) x[(to.first + i) * s_.states + n] += table[n * scan_channels + i];
    }
  }

 private:
  /// x [I, N] as a table for each range.
  void turn(const T* x, T* tables) const {
    for (int64_t i = 0; i < s_.channels; ++i) {
      T* const column = tables + i / scan_channels * table_ + i % scan_channels;
      for (int64_t n = 0; n < s_.states; ++n) column[n * scan_channels] = x[i * s_.states + n];
    }
  }

  const ScanShape& s_;
  const ScanInputs<T>& in_;
  const int64_t count_, table_;
  Aligned<T> tables_;
};

}  // namespace

template <class T>
void selective_scan(const ScanShape& shape, const ScanInputs<T>& in, const T* h0, T* y, T* h_last, T* kept) {
  const Ranges<T> ranges(shape, in);
  ranges.for_each_task([&](int64_t number, const ScanScratch<T>& scratch) {
    scan_forward(ranges.task(number), h0, y, h_last, kept, scratch);
  });
}

template <class T>
void selective_scan_backward(const ScanShape& shape, const ScanInputs<T>& in, const T* kept, const T* dy,
                             const T* dh_last, const ScanGradients<T>& out) {
  const Ranges<T> ranges(shape, in);
  const int64_t table = ranges.table(), of_task = scan_channels + (shape.fixed ? 3 : 1) * table;
  const int64_t sequence = shape.fixed ? 0 : shape.steps * shape.batch * shape.states;
  const Aligned<T> tables(ranges.tasks() * of_task);
  std::vector<T> sequences(2 * ranges.count() * sequence);  // dB and dC of each range of channels
  ranges.for_each_task([&](int64_t number, const ScanScratch<T>& scratch) {
    T* const d = tables.data() + number * of_task;
    T* const range_b = sequences.data() + 2 * (number % ranges.count()) * sequence;
    T* const a = d + scan_channels;
    const ScanSums<T> sums = {
        .a = a, .b = shape.fixed ? a + table : range_b, .c = shape.fixed ? a + 2 * table : range_b + sequence, .d = d};
    scan_backward(ranges.task(number), kept, dy, dh_last, out, sums, scratch);
  });

  const int64_t matrix = shape.channels * shape.states, of_coefficients = shape.fixed ? matrix : sequence;
  std::fill_n(out.d, shape.channels, T{0});
  std::fill_n(out.a, matrix, T{0});
  std::fill_n(out.b, of_coefficients, T{0});
  std::fill_n(out.c, of_coefficients, T{0});
  for (int64_t number = 0; number < ranges.tasks(); ++number) {
    const ScanTask<T> task = ranges.task(number);
    const T* const d = tables.data() + number * of_task;
    for (int64_t i = 0; i < task.count; ++i) out.d[task.first + i] += d[i];
    ranges.add_table(number, d + scan_channels, out.a);
    if (!shape.fixed) continue;
    ranges.add_table(number, d + scan_channels + table, out.b);
    ranges.add_table(number, d + scan_channels + 2 * table, out.c);
  }
  for (int64_t range = 0; range < ranges.count(); ++range) {
    const T* const range_b = sequences.data() + 2 * range * sequence;
    for (int64_t i = 0; i < sequence; ++i) out.b[i] += range_b[i];
    for (int64_t i = 0; i < sequence; ++i) out.c[i] += range_b[sequence + i];
  }
}

template void selective_scan(const ScanShape&, const ScanInputs<float>&, const float*, float*, float*, float*);
template void selective_scan(const ScanShape&, const ScanInputs<double>&, const double*, double*, double*, double*);
template void selective_scan_backward(const ScanShape&, const ScanInputs<float>&, const float*, const float*,
                                      const float*, const ScanGradients<float>&);
template void selective_scan_backward(const ScanShape&, const ScanInputs<double>&, const double*, const double*,
                                      const double*, const ScanGradients<double>&);

namespace plain {
namespace {

/// One channel of one row.
template <class T>
struct Channel {
  const ScanShape& s;
  const ScanInputs<T>& in;
  int64_t row, i;

  bool live(int64_t t) const { return !s.ended(t, row); }
  bool cleared(int64_t t) const { return s.cleared(t, row); }
  int64_t at(int64_t t) const { return (t * s.batch + row) * s.channels + i; }
  int64_t state() const { return (row * s.channels + i) * s.states; }
  /// Where the coefficients of step t begin in B and C.
  int64_t coefficients(int64_t t) const { return s.fixed ? i * s.states : (t * s.batch + row) * s.states; }
  T decay(int64_t t, int64_t n) const { return std::exp(in.dt[at(t)] * in.a[i * s.states + n]); }
  T next(int64_t t, int64_t n, T before) const {
    return decay(t, n) * before + in.dt[at(t)] * in.u[at(t)] * in.b[coefficients(t) + n];
  }
};

template <class T, class Body>
void for_each_channel(const ScanShape& shape, const ScanInputs<T>& in, const Body& body) {
  for (int64_t row = 0; row < shape.batch; ++row) {
    for (int64_t i = 0; i < shape.channels; ++i) body(Channel<T>{shape, in, row, i});
  }
}

}  // namespace

template <class T>
void selective_scan(const ScanShape& shape, const ScanInputs<T>& in, const T* h0, T* y, T* h_last) {
  for_each_channel(shape, in, [&](const Channel<T>& channel) {
    std::vector<T> h(h0 + channel.state(), h0 + channel.state() + shape.states);
    for (int64_t t = 0; t < shape.steps; ++t) {
      T& out = y[channel.at(t)];
      out = 0;
      if (!channel.live(t)) continue;
      if (channel.cleared(t)) std::fill(h.begin(), h.end(), T{0});
      for (int64_t n = 0; n < shape.states; ++n) {
        h[n] = channel.next(t, n, h[n]);
        out += in.c[channel.coefficients(t) + n] * h[n];
      }
      out += in.d[channel.i] * in.u[channel.at(t)];
    }
    std::copy(h.begin(), h.end(), h_last + channel.state());
  });
}

template <class T>
void selective_scan_backward(const ScanShape& shape, const ScanInputs<T>& in, const T* h0, const T* dy,
                             const T* dh_last, const ScanGradients<T>& out) {
  const int64_t sequence = shape.steps * shape.batch * shape.channels, matrix = shape.channels * shape.states;
  const int64_t of_coefficients = shape.fixed ? matrix : shape.steps * shape.batch * shape.states;
  std::fill_n(out.u, sequence, T{0});
  std::fill_n(out.dt, sequence, T{0});
  std::fill_n(out.a, matrix, T{0});
  std::fill_n(out.b, of_coefficients, T{0});
  std::fill_n(out.c, of_coefficients, T{0});
  std::fill_n(out.d, shape.channels, T{0});
  if (out.dh != nullptr) std::fill_n(out.dh, sequence * shape.states, T{0});
  for_each_channel(shape, in, [&](const Channel<T>& channel) {
    const int64_t i = channel.i;
    for (int64_t n = 0; n < shape.states; ++n) {
      std::vector<T> before, after;  // each step
      T h = h0[channel.state() + n];
      for (int64_t t = 0; t < shape.steps && channel.live(t); ++t) {
        before.push_back(channel.cleared(t) ? 0 : h);
        h = channel.next(t, n, before.back());
        after.push_back(h);
      }
      T dh = dh_last != nullptr ? dh_last[channel.state() + n] : 0;
      for (int64_t t = static_cast<int64_t>(after.size()) - 1; t >= 0; --t) {
        const int64_t at = channel.at(t), coefficient = channel.coefficients(t) + n;
        const T cotangent = dy != nullptr ? dy[at] : 0, u = in.u[at], dt = in.dt[at], a = in.a[i * shape.states + n];
        dh += in.c[coefficient] * cotangent;
        if (out.dh != nullptr) out.dh[at * shape.states + n] = dh;
        const T carried = dh * channel.decay(t, n), q = carried * before[t];
        out.c[coefficient] += cotangent * after[t];
        out.b[coefficient] += dh * dt * u;
        out.u[at] += dt * in.b[coefficient] * dh + (n == 0 ? in.d[i] * cotangent : 0);
        out.dt[at] += a * q + in.b[coefficient] * u * dh;
        out.a[i * shape.states + n] += dt * q;
        if (n == 0) out.d[i] += cotangent * u;
        dh = channel.cleared(t) ? 0 : carried;
      }
      out.h0[channel.state() + n] = dh;
    }
  });
}

template void selective_scan(const ScanShape&, const ScanInputs<float>&, const float*, float*, float*);
template void selective_scan(const ScanShape&, const ScanInputs<double>&, const double*, double*, double*);
template void selective_scan_backward(const ScanShape&, const ScanInputs<float>&, const float*, const float*,
                                      const float*, const ScanGradients<float>&);
template void selective_scan_backward(const ScanShape&, const ScanInputs<double>&, const double*, const double*,
                                      const double*, const ScanGradients<double>&);

}  // namespace plain
}  // namespace carousel::kernels
