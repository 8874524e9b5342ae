#pragma once

#include <string>

namespace carousel::kernels {

/// CPUs that this process may use: those of its affinity mask, and no more than its container's quota pays for.
int available_cpus();

/// The CPU quota that control groups (version 1 or 2) set for a process, rounded up to whole CPUs; 0 when there is
/// none. `membership` is the text of /proc/self/cgroup, `root` the folder where control groups are mounted. Every
/// group from the process's own up to the root counts; groups that cannot be seen (as inside a container) are passed
/// over.
int cpu_quota(const std::string& membership, const std::string& root);

}  // namespace carousel::kernels
