#include <carousel/tensor/kernels/blas.h>
#include <carousel/tensor/kernels/threads.h>

#include <omp.h>

#ifdef CAROUSEL_HAVE_BLAS
#include <cblas.h>
#endif

namespace carousel::kernels {

#ifdef CAROUSEL_HAVE_BLAS

namespace {

enum class Pool { none, own, openmp };  // in the order of openblas_get_parallel()

Pool pool() {
  static const Pool kind = static_cast<Pool>(openblas_get_parallel());
  return kind;
}

/// Whose turn it is to use several threads, or a BLAS that serves one caller; also guards `serial_scopes`.
std::mutex& turn() {
  static std::mutex mutex;
  return mutex;
}

int serial_scopes = 0;  // SerialBlas objects alive

}  // namespace

std::string blas_name() {
  const std::string config = openblas_get_config();  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH USE_OPENMP ..."
  const size_t version_end = config.find(' ', config.find(' ') + 1);
  static const char* const builds[] = {"serial", "pthread", "openmp"};
  return config.substr(0, version_end) + " (" + builds[static_cast<int>(pool())] + ")";
}

std::string blas_kernel() { return openblas_get_corename(); }

BlasThreads::BlasThreads(bool many) {
  if (pool() == Pool::none) {  // Debian's serial build has no locks: two callers at once get wrong numbers
    turn_ = std::unique_lock(turn());
    return;
  }
  if (omp_in_parallel()) return;
  const int count = many ? thread_count() : 1;
  // Small products need no count: OpenBLAS takes one thread for them by itself.
  const auto must_set = [&] { return pool() == Pool::own && many && openblas_get_num_threads() != count; };
  if (count > 1 || must_set()) turn_ = std::unique_lock(turn());
  if (pool() == Pool::openmp) {  // it takes what OpenMP would give this caller
    previous_ = omp_get_max_threads();
    was_dynamic_ = omp_get_dynamic() != 0;
    omp_set_num_threads(count);
    omp_set_dynamic(0);  // OpenBLAS waits for ever for a thread that it was promised and not given
  } else if (turn_.owns_lock() && serial_scopes == 0 && must_set()) {
    openblas_set_num_threads(count);
  }
  if (count == 1 && turn_.owns_lock()) turn_.unlock();  // one thread of its own: nobody need wait
}

BlasThreads::~BlasThreads() {
  if (previous_ == 0) return;
  omp_set_num_threads(previous_);
  omp_set_dynamic(was_dynamic_ ? 1 : 0);
}

SerialBlas::SerialBlas() {
  if (pool() != Pool::own) return;
  const std::lock_guard lock(turn());
  if (serial_scopes++ == 0) openblas_set_num_threads(1);
}

SerialBlas::~SerialBlas() {
  if (pool() != Pool::own) return;
  const std::lock_guard lock(turn());
  --serial_scopes;  // the next product of many threads sets its count
}

#else

std::string blas_name() { return "none (plain products)"; }
std::string blas_kernel() { return "none"; }
BlasThreads::BlasThreads(bool) {}
BlasThreads::~BlasThreads() = default;
SerialBlas::SerialBlas() = default;
SerialBlas::~SerialBlas() = default;

#endif

}  // namespace carousel::kernels
