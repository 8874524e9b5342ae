#include <carousel/tensor/kernels/available_cpus.h>

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>

namespace carousel::kernels {
namespace {

/// Microseconds of CPU time per period, as whole CPUs; 0 for "no limit" (version 1 writes -1).
int whole_cpus(double quota, double period) {
  return quota > 0 && period > 0 ? std::max(1, static_cast<int>(std::ceil(std::min(quota / period, 1e6)))) : 0;
}

/// Version 2: one file, "200000 100000" or "max 100000".
int quota_of_group_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  double quota = 0, period = 0;
  return file >> quota >> period ? whole_cpus(quota, period) : 0;
}

/// Version 1: two files of one number each.
int quota_of_group_v1(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us"), period_file(folder + "/cpu.cfs_period_us");
  double quota = 0, period = 0;
  return quota_file >> quota && period_file >> period ? whole_cpus(quota, period) : 0;
}

int smaller_limit(int a, int b) { return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b); }

/// The tightest limit of `path` and the groups above it.
template <class QuotaOfGroup>
int quota_up_to_root(const std::string& mount, std::string path, QuotaOfGroup quota_of_group) {
  int limit = quota_of_group(mount);
  while (path.size() > 1) {
    limit = smaller_limit(limit, quota_of_group(mount + path));
    path.erase(path.find_last_of('/'));
  }
  return limit;
}

bool names_controller(const std::string& list, const std::string& controller) {
  return ("," + list + ",").find("," + controller + ",") != std::string::npos;
}

int cpus_of_affinity_mask() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) return CPU_COUNT(&mask);
  return std::max(1u, std::thread::hardware_concurrency());  // more CPUs than cpu_set_t can name
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

int cpu_quota(const std::string& membership, const std::string& root) {
  std::istringstream lines(membership);
  std::string id, controllers, path;  // each line is "4:cpu,cpuacct:/group", with no controllers in version 2
  int limit = 0;
  while (std::getline(lines, id, ':') && std::getline(lines, controllers, ':') && std::getline(lines, path)) {
    if (controllers.empty()) {
      limit = smaller_limit(limit, quota_up_to_root(root, path, quota_of_group_v2));
    } else if (names_controller(controllers, "cpu")) {
      limit = smaller_limit(limit, quota_up_to_root(root + "/cpu", path, quota_of_group_v1));
    }
  }
  return limit;
}

int available_cpus() {
  static const std::string root = "/sys/fs/cgroup";
  return std::max(1, smaller_limit(cpus_of_affinity_mask(), cpu_quota(text_of("/proc/self/cgroup"), root)));
}

}  // namespace carousel::kernels
