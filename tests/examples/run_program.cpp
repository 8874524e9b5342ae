#include "run_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "temporary_folder.h"

namespace carousel::examples {

namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// `out` is what standard output is opened as.
ProgramResult run_into(const std::string& out, const TemporaryFolder& folder, const std::string& program,
                       const std::vector<std::string>& arguments, const std::function<void(int pid)>& meanwhile) {
  const std::string path = std::string(CAROUSEL_BIN) + "/" + program;
  setenv("OMP_WAIT_POLICY", "passive", 0);  // other tests run beside: threads that spin while waiting slow everything
  std::vector<char*> words = {const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  const std::string err = folder.path("err");
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT | O_NOCTTY, 0600);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT, 0600);
  pid_t pid = 0;
  const int failure = posix_spawn(&pid, path.c_str(), &files, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failure != 0) return {127, "", "cannot start " + path};

  if (meanwhile) meanwhile(pid);
  int status = 0;
  waitpid(pid, &status, 0);
  return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), "", contents(err)};
}

void set_columns(int terminal, int columns) {
  winsize window{};
  window.ws_row = 24;
  window.ws_col = static_cast<unsigned short>(columns);
  ioctl(terminal, TIOCSWINSZ, &window);
}

}  // namespace

ProgramResult run_built(const std::string& program, const std::vector<std::string>& arguments,
                        const std::function<void(int pid)>& meanwhile) {
  const TemporaryFolder folder;  // files, not pipes: nobody has to empty them while the program runs
  const std::string out = folder.path("out");
  ProgramResult result = run_into(out, folder, program, arguments, meanwhile);
  result.out = contents(out);
  return result;
}

ProgramResult run_on_terminal(const std::string& program, const std::vector<std::string>& arguments, int columns,
                              int later_columns) {
  const TemporaryFolder folder;
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) return {127, "", "no terminal"};
  set_columns(terminal, columns);
  setenv("TERM", "xterm", 1);
  std::string out;
  const auto read_all = [&](int) {
    char some[256];
    for (ssize_t count = 0; (count = read(terminal, some, sizeof some)) > 0;) {  // fails once the program has ended
      out.append(some, static_cast<size_t>(count));
      if (out.size() > 1000) set_columns(terminal, later_columns);
    }
  };
  ProgramResult result = run_into(ptsname(terminal), folder, program, arguments, read_all);
  close(terminal);
  result.out = out;
  return result;
}

}  // namespace carousel::examples
