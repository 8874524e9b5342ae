#include "common/gnuplot.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

namespace carousel::examples {

namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// A file, not a pipe: gnuplot may end before it has read all.
std::unique_ptr<std::FILE, Close> file_with(const std::string& text) {
  std::unique_ptr<std::FILE, Close> file(std::tmpfile());
  const bool written = file && std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  if (written && std::fseek(file.get(), 0, SEEK_SET) == 0) return file;
  return nullptr;
}

// 0, or the reason that the system gives.
int start(int input, const std::string& output, pid_t& pid) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::string name = "gnuplot", plain = "--default-settings", from_input = "-";
  char* const words[] = {name.data(), plain.data(), from_input.data(), nullptr};
  const int failure = posix_spawnp(&pid, name.c_str(), &files, nullptr, words, environ);
  posix_spawn_file_actions_destroy(&files);
  return failure;
}

}  // namespace

std::string draw(const std::string& script, const std::string& path) {
  const std::string temporary = path + ".tmp";
  const auto input = file_with(script);
  if (!input) return std::string("cannot write a temporary file: ") + std::strerror(errno);
  std::error_code error;
  pid_t pid = 0;
  const int failure = start(fileno(input.get()), temporary, pid);
  if (failure != 0) {
    std::filesystem::remove(temporary, error);
    return failure == ENOENT ? "gnuplot is not installed"
                             : std::string("cannot start gnuplot: ") + std::strerror(failure);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {  // a signal that ends training
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && std::filesystem::file_size(temporary, error) > 0 && !error) {
    std::filesystem::rename(temporary, path, error);
    return error ? error.message() : "";
  }
  std::filesystem::remove(temporary, error);
  return "gnuplot cannot draw it";
}

}  // namespace carousel::examples
