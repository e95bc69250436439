// SPDX-License-Identifier: Apache-2.0
// The program: picks a verb and turns its outcome into an exit code.
#include <malloc.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/distributed.h"
#include "cli/errors.h"
#include "cli/usage.h"
#include "quench/files.h"

namespace quench::cli {
namespace {

std::vector<Command> setup_commands(CLI::App& root) {
  return {setup_inspect(root), setup_run(root),        setup_eval(root),     setup_bench(root),
          setup_compare(root), setup_quantize(root),   setup_train(root),    setup_calibrate(root),
          setup_lint(root),    setup_convert(root),    setup_retarget(root), setup_pack(root),
          setup_unpack(root),  setup_list(root),       setup_demo(root),     setup_analyze(root),
          setup_report(root),  setup_completion(root), setup_doctor(root),   setup_help(root),
          setup_man(root),     setup_launch(root)};
}

/// The headings of the list of commands, and what stands under them.
void group_commands(CLI::App& root) {
  const std::vector<std::pair<const char*, std::vector<const char*>>> groups = {
      {"Start here", {"quantize", "eval", "inspect", "run", "demo", "help"}},
      {"Look closer", {"doctor", "analyze", "compare", "bench", "lint", "report"}},
      {"In steps", {"calibrate", "train", "launch"}},
      {"Files", {"convert", "retarget", "pack", "unpack"}},
      {"Lists and shells", {"list", "completion", "man"}}};
  for (const auto& [heading, names] : groups) {
    for (const char* name : names) root.get_subcommand(name)->group(heading);
  }
}

/// Flags that only experts need are hidden when the commands are set up.
bool asks_for_all(const std::vector<std::string>& words) {
  const auto given = [&](const char* word) {
    return std::ranges::find(words, word) != words.end();
  };
  const bool pages = !words.empty() && (words[0] == "man" || words[0] == "completion");
  return pages || given("--help-all") || (!words.empty() && words[0] == "help" && given("--all"));
}

/// Called as converter_lite, by a link of that name, it takes that program's command lines.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const std::string name = std::filesystem::path(argv[0]).filename().string();
  if (name == "converter_lite") words.insert(words.begin(), "convert");
  return words;
}

/// A full disk shows only when the last buffer is written.
int flush_output(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  return report_error(std::string("stdout cannot be written: ") + std::strerror(errno), kBadInput);
}

int run_command(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    if (!command.app->parsed()) continue;
    const int code = flush_output(command.run());
    leave_ranks();
    return code;
  }
  return kUsage;
}

int run_program(int argc, char** argv) {
  remember_command(argc, argv);
  CLI::App root("Quench: quantise trained models, and run, score and time them.", "quench");
  const std::vector<std::string> words = with_rank(words_of(argc, argv));
  shows_all_flags() = asks_for_all(words);
  root.set_version_flag("-V,--version", "quench " QUENCH_VERSION);
  root.require_subcommand(1);
  root.formatter(std::make_shared<Help>());
  root.get_formatter()->column_width(34);
  root.footer("Example:\n  quench inspect model.onnx\n\nquench COMMAND --help says more.");
  const std::vector<Command> commands = setup_commands(root);
  group_commands(root);
  if (words.empty()) {
    std::fputs(root.help().c_str(), stderr);
    return kUsage;
  }
  if (!words.front().starts_with('-')) {
    const std::string complaint = unknown_command(root, words.front());
    if (!complaint.empty()) return report_error(complaint, kUsage);
  }
  try {
    // The parser takes words from the end.
    root.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    return flush_output(report_parse_error(root, error));
  }
  return run_command(commands);
}

/// The engine's threads wait for each other by spinning. GCC's OpenMP spins for milliseconds, which
/// is no faster on an idle machine and up to a hundred times slower on a busy one; it reads its
/// settings when the engine is loaded, so this is early enough.
void spin_briefly() {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  (void)::setenv("GOMP_SPINCOUNT", "1000", 0);
}

/// What libtorch 2 logs when another process has left or does not come is no news, and pages long:
/// what went wrong is said in a sentence.
void log_briefly() { (void)::setenv("TORCH_CPP_LOG_LEVEL", "FATAL", 0); }

/// A file that may not grow further is an error that names it, not a signal that leaves it behind.
void survive_size_limits() { (void)std::signal(SIGXFSZ, SIG_IGN); }

/// Weights are used where they lie in their file. When another program cuts that file off, the
/// system sends SIGBUS, on whichever thread; nothing can go on, but it can be said.
extern "C" void report_lost_file(int signal, siginfo_t* info, void* /*context*/) {
  const char* path = quench::mapped_file_at(info->si_addr);
  if (path == nullptr) {
    (void)std::signal(signal, SIG_DFL);  // not ours: it comes again and ends the program
    return;
  }
  for (const char* text : {"quench: error: cannot read '", path,
                           "': it has become shorter, or its disk fails; run again when nothing "
                           "writes to it\n"}) {
    (void)!::write(STDERR_FILENO, text, std::strlen(text));
  }
  std::_Exit(kBadInput);
}

void watch_mapped_files() {
  struct sigaction action {};
  action.sa_sigaction = report_lost_file;
  action.sa_flags = SA_SIGINFO;
  (void)::sigaction(SIGBUS, &action, nullptr);
}

/// Left alone, glibc keeps ever larger buffers in its heaps once one was freed: memory would grow
/// with the number of samples (measured: 12 % from 50 to 400 photographs, 1 % with a limit).
void give_memory_back() {
#ifdef __GLIBC__
  constexpr int kMapped = 4 << 20;  // bytes: smaller limits cost time for fresh pages
  (void)::mallopt(M_MMAP_THRESHOLD, kMapped);
  // The first limit also stops glibc from raising this one, and 128 kB would go back and forth
  // several times a run: 0.63 ms instead of 0.47 for a network with a hundred small layers.
  constexpr int kKept = 16 << 20;
  (void)::mallopt(M_TRIM_THRESHOLD, kKept);
#endif
}

/// All is written and released: what the hundreds of libraries behind the engine would still tidy
/// up takes a tenth of a second and serves nobody. Leak checkers work at the usual end.
int leave(int code) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
  std::fflush(nullptr);
  std::_Exit(code);
#endif
  return code;
}

}  // namespace
}  // namespace quench::cli

int main(int argc, char** argv) {
  quench::cli::spin_briefly();
  quench::cli::log_briefly();
  quench::cli::survive_size_limits();
  quench::cli::watch_mapped_files();
  quench::cli::give_memory_back();
  try {
    return quench::cli::leave(quench::cli::run_program(argc, argv));
  } catch (...) {
    return quench::cli::report_current_exception();
  }
}
