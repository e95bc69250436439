// SPDX-License-Identifier: Apache-2.0
// quench launch: one command as several processes of this machine.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/errors.h"

namespace quench::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct LaunchFlags {
  int processes = 0;
  int port = 0;
};

/// A port of this machine that is free now.
int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  const bool found =
      socket >= 0 && ::bind(socket, plain, size) == 0 && ::getsockname(socket, plain, &size) == 0;
  if (socket >= 0) (void)::close(socket);
  if (!found) throw Error(ErrorKind::Io, "this machine has no free port; give one with --port");
  return ntohs(address.sin_port);
}

struct Child {
  pid_t id = -1;
  int errors = -1;   ///< where its stderr is read; -1: it has ours
  std::string said;  ///< the end of it
  bool ended = false;
  int status = 0;
  bool failed() const { return ended && status != 0; }
};

void set(const char* name, int value) { (void)::setenv(name, std::to_string(value).c_str(), 1); }

/// In the child, before the program: nothing here may come back.
[[noreturn]] void become_rank(int rank, const LaunchFlags& flags, int errors,
                              std::vector<char*> words) {
  (void)::prctl(PR_SET_PDEATHSIG, SIGTERM);
  set("RANK", rank);
  set("LOCAL_RANK", rank);
  set("WORLD_SIZE", flags.processes);
  set("LOCAL_WORLD_SIZE", flags.processes);
  set("MASTER_PORT", flags.port);
  (void)::setenv("MASTER_ADDR", "127.0.0.1", 1);
  (void)::unsetenv("TORCHELASTIC_USE_AGENT_STORE");
  if (errors >= 0) (void)::dup2(errors, STDERR_FILENO);
  (void)::execv("/proc/self/exe", words.data());
  std::_Exit(kInternal);
}

/// Rank 0 speaks for all: of the others, stderr is kept in case it cannot.
Child start(int rank, const LaunchFlags& flags, std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  int ends[2] = {-1, -1};
  if (rank > 0 && ::pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(ErrorKind::Io, std::string("no more pipes: ") + std::strerror(errno));
  }
  Child child;
  child.id = ::fork();
  if (child.id == 0) become_rank(rank, flags, ends[1], std::move(pointers));
  if (ends[1] >= 0) (void)::close(ends[1]);
  child.errors = ends[0];
  if (child.id < 0) {
    throw Error(ErrorKind::Io, std::string("no more processes: ") + std::strerror(errno));
  }
  if (child.errors >= 0) (void)::fcntl(child.errors, F_SETFL, O_NONBLOCK);
  return child;
}

void listen(Child& child) {
  constexpr std::size_t kKept = 16384;
  char buffer[4096];
  while (child.errors >= 0) {
    const ssize_t got = ::read(child.errors, buffer, sizeof(buffer));
    if (got < 0) return;
    if (got == 0) {
      (void)::close(child.errors);
      child.errors = -1;
      return;
    }
    child.said.append(buffer, static_cast<std::size_t>(got));
    if (child.said.size() > kKept) child.said.erase(0, child.said.size() - kKept);
  }
}

class Watch {
 public:
  Watch(std::vector<Child> children, bool elastic)
      : children_(std::move(children)), elastic_(elastic) {}
  ~Watch() {
    signal_all(SIGKILL);  // only where an error left some behind
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  int run() {
    const std::atomic<bool>* interrupted = watch_interrupts();
    while (running()) {
      wait_a_moment();
      if (interrupted->load()) end_soon(Clock::now());
      if (first_failed_ >= 0) end_soon(Clock::now() + kGrace);
      if (ending_ && Clock::now() >= *ending_ && !asked_) {
        signal_all(SIGTERM);
        asked_ = true;
      }
      if (ending_ && Clock::now() >= *ending_ + kPatience) signal_all(SIGKILL);
    }
    return interrupted->load() ? static_cast<int>(kInterrupted) : result();
  }

 private:
  // The others hear of a failure by themselves, and end with its sentence.
  static constexpr std::chrono::seconds kGrace{5};
  static constexpr std::chrono::seconds kPatience{10};

  bool running() const {
    return std::ranges::any_of(children_, [](const Child& each) { return !each.ended; });
  }

  void end_soon(Clock::time_point when) {
    if (!ending_ || when < *ending_) ending_ = when;
  }

  void signal_all(int number) const {
    for (const Child& each : children_) {
      if (!each.ended && each.id > 0) (void)::kill(each.id, number);
    }
  }

  void wait_a_moment() {
    std::vector<pollfd> open;
    for (const Child& each : children_) {
      if (each.errors >= 0) open.push_back({.fd = each.errors, .events = POLLIN, .revents = 0});
    }
    constexpr int kMilliseconds = 20;
    (void)::poll(open.data(), open.size(), kMilliseconds);
    for (std::size_t i = 0; i < children_.size(); ++i) {
      Child& child = children_[i];
      listen(child);
      if (child.ended || ::waitpid(child.id, &child.status, WNOHANG) != child.id) continue;
      child.ended = true;
      listen(child);
      if (elastic_ && i > 0 && WIFSIGNALED(child.status)) {
        std::fprintf(stderr,
                     "quench: warning: rank %zu was ended by signal %d: others do its share\n", i,
                     WTERMSIG(child.status));
        continue;
      }
      if (child.failed() && first_failed_ < 0) first_failed_ = static_cast<int>(i);
    }
  }

  int result() const {
    if (first_failed_ < 0) return kOk;
    const Child& child = children_[static_cast<std::size_t>(first_failed_)];
    if (WIFSIGNALED(child.status)) {
      return report_error("rank " + std::to_string(first_failed_) + " was ended by signal " +
                              std::to_string(WTERMSIG(child.status)) + " (" +
                              ::strsignal(WTERMSIG(child.status)) + ")",
                          kInternal);
    }
    // What a rank failed with is what rank 0 says, unless it ended well or never heard of it.
    const Child& speaker = children_.front();
    const bool said = speaker.failed() && WIFEXITED(speaker.status);
    if (!said) std::fputs(child.said.c_str(), stderr);
    return WEXITSTATUS(child.status);
  }

  std::vector<Child> children_;
  bool elastic_;  ///< all but the first may be killed
  int first_failed_ = -1;
  std::optional<Clock::time_point> ending_;
  bool asked_ = false;
};

/// The command that is launched; it must be one that several processes can share.
void check(const CLI::App& root, const std::vector<std::string>& words) {
  const CLI::App* verb = &root;
  for (const std::string& word : words) {
    const auto found =
        verb->get_subcommands([&](const CLI::App* each) { return each->get_name() == word; });
    if (found.empty()) break;
    verb = found.front();
  }
  if (verb->get_option_no_throw("--distributed") != nullptr) return;
  throw Error(ErrorKind::Usage,
              words.empty() ? "launch what? As in quench launch -n 4 calibrate model.onnx ..."
                            : "'" + words.front() +
                                  "' is nothing that several processes share; calibrate, eval, "
                                  "quantize, train and analyze sensitivity and target are");
}

int run_launch(const CLI::App& root, LaunchFlags flags, const std::vector<std::string>& command) {
  check(root, command);
  std::vector<std::string> words = {"quench"};
  words.insert(words.end(), command.begin(), command.end());
  if (std::ranges::find(words, "--distributed") == words.end()) words.push_back("--distributed");
  if (flags.port == 0) flags.port = free_port();
  std::vector<Child> children;
  std::fflush(nullptr);
  for (int rank = 0; rank < flags.processes; ++rank) children.push_back(start(rank, flags, words));
  const bool elastic = std::ranges::find(words, "--elastic") != words.end();
  return Watch(std::move(children), elastic).run();
}

}  // namespace

Command setup_launch(CLI::App& root) {
  CLI::App* app =
      add_verb(root, "launch", "Run a command as several processes that share its work",
               "quench launch -n 2 calibrate model.onnx -o model.stats --data images.npy");
  auto flags = std::make_shared<LaunchFlags>();
  app->add_option("-n,--processes", flags->processes, "How many")
      ->required()
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  app->add_option("--port", flags->port, "Port that they meet at; default: a free one")
      ->check(CLI::Range(1, 65535))
      ->type_name("PORT");
  app->prefix_command();
  return {app, [app, flags, &root] { return run_launch(root, *flags, app->remaining()); }};
}

}  // namespace quench::cli
