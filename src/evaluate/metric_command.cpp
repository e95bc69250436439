// SPDX-License-Identifier: Apache-2.0
// A user's own program as a metric.
#include "evaluate/metric_command.h"

#include <sys/wait.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "base/format.h"

namespace quench::evaluation {
namespace {

constexpr std::string_view kPlace = "{model}";
constexpr std::size_t kMaxOutput = 1U << 20;

/// In single quotes, as a shell takes any name.
std::string quoted(const std::string& path) {
  std::string result = "'";
  for (const char c : path) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      result += c;
    }
  }
  return result + "'";
}

std::string filled_in(std::string command, const std::string& path) {
  const std::string word = quoted(path);
  for (std::size_t at = command.find(kPlace); at != std::string::npos;
       at = command.find(kPlace, at + word.size())) {
    command.replace(at, kPlace.size(), word);
  }
  return command;
}

/// What the command prints, and its exit status.
std::pair<std::string, int> output_of(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) fail(ErrorKind::Io, "the metric command cannot be started");
  std::string text;
  std::array<char, 4096> buffer{};
  for (std::size_t got = 1; got > 0;) {
    got = std::fread(buffer.data(), 1, buffer.size(), pipe);
    if (text.size() < kMaxOutput) text.append(buffer.data(), got);
  }
  const int status = ::pclose(pipe);
  return {text, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

/// The last word as a number, or nothing.
std::optional<double> last_number(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return std::nullopt;
  const std::size_t start = text.find_last_of(" \t\r\n", end);
  const std::string word = text.substr(start == std::string::npos ? 0 : start + 1,
                                       end - (start == std::string::npos ? 0 : start + 1) + 1);
  char* rest = nullptr;
  const double value = std::strtod(word.c_str(), &rest);
  if (rest == word.c_str() || *rest != '\0' || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// A name in the folder that no file has.
std::string free_path(const std::filesystem::path& folder, const std::string& name) {
  for (int i = 0;; ++i) {
    const std::filesystem::path path =
        folder / format("{}{}.onnx", name, i == 0 ? "" : format("_{}", i));
    if (!std::filesystem::exists(std::filesystem::symlink_status(path))) return path.string();
  }
}

struct Removed {
  std::string path;
  ~Removed() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

}  // namespace

double run_metric_command(const std::string& command, const Model& model, const std::string& folder,
                          const std::string& name) {
  if (command.find(kPlace) == std::string::npos) {
    fail(ErrorKind::Usage, "the metric command '{}' has no {{model}} for the model's file",
         command);
  }
  const Removed file{free_path(folder, name)};
  save(model, file.path);
  const auto [text, status] = output_of(filled_in(command, file.path));
  if (status != 0) {
    fail(ErrorKind::BadData, "the metric command '{}' failed with exit status {}", command, status);
  }
  const std::optional<double> value = last_number(text);
  if (!value) {
    fail(ErrorKind::BadData, "the metric command '{}' printed no number; it printed '{}'", command,
         on_one_line(text.substr(0, 80)));
  }
  return *value;
}

}  // namespace quench::evaluation
