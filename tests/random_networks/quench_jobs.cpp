// SPDX-License-Identifier: Apache-2.0
// Runs and quantises networks as `quench` would, many in one process: the engine is loaded once and
// every job is a fork of that, so that one that crashes or hangs is one failure.
//   quench_jobs SECONDS < jobs
// A job is a line with tabs: MODEL SETTINGS OUT INPUTS FLOAT_DIR INTEGER_DIR LOG, where INPUTS is
// name=file.npy, joined with commas. It writes what the model makes into FLOAT_DIR, the model
// quantised by SETTINGS (what `quench quantize --settings` takes) to OUT, and what that makes into
// INTEGER_DIR. SETTINGS "-" asks for the first run alone. The answer is a line: "ok", the kind of
// error ("unsupported"), or "signal N"; LOG has the message.
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "quench/error.h"
#include "quench/quantize.h"
#include "quench/run.h"

namespace {

using namespace quench;

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

RunOptions run_options(const std::string& inputs, const std::string& folder) {
  RunOptions options;
  for (const std::string& input : split(inputs, ',')) {
    const std::size_t equals = input.find('=');
    options.inputs[input.substr(0, equals)] = input.substr(equals + 1);
  }
  options.output_dir = folder;
  return options;
}

void work(const std::vector<std::string>& job, std::ostream& log) {
  Context context;
  context.threads = 1;
  log << "float run: " << std::flush;
  run_model(job.at(0), run_options(job.at(3), job.at(4)), context);
  log << "done\n" << std::flush;
  if (job.at(1) == "-") return;
  log << "quantize: " << std::flush;
  quantize(job.at(0), job.at(2), read_settings(job.at(1)), context);
  log << "done\ninteger run: " << std::flush;
  run_model(job.at(2), run_options(job.at(3), job.at(5)), context);
  log << "done\n" << std::flush;
}

int run_job(const std::vector<std::string>& job) {
  std::ofstream log(job.at(6));
  try {
    work(job, log);
    return 0;
  } catch (const Error& error) {
    log << error.what() << '\n';
    return 1 + static_cast<int>(error.kind());
  }
}

std::string answer(int status) {
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  const int code = WEXITSTATUS(status);
  return code == 0 ? "ok" : name_of(static_cast<ErrorKind>(code - 1));
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned seconds = argc > 1 ? static_cast<unsigned>(std::stoul(argv[1])) : 60;
  load_engine();
  for (std::string line; std::getline(std::cin, line);) {
    const pid_t child = fork();
    if (child == 0) {
      (void)alarm(seconds);
      _exit(run_job(split(line, '\t')));
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return 1;
    std::cout << answer(status) << std::endl;
  }
  return 0;
}
