// SPDX-License-Identifier: Apache-2.0
// The verbs of the program; each has a file of its own.
#pragma once

#include <CLI/App.hpp>
#include <functional>

namespace quench::cli {

/// A verb: its part of the command line, and what to do when it was chosen.
struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;  ///< returns the exit code
};

Command setup_inspect(CLI::App& root);
Command setup_run(CLI::App& root);
Command setup_eval(CLI::App& root);
Command setup_bench(CLI::App& root);
Command setup_compare(CLI::App& root);
Command setup_quantize(CLI::App& root);
Command setup_train(CLI::App& root);
Command setup_calibrate(CLI::App& root);
Command setup_lint(CLI::App& root);
Command setup_convert(CLI::App& root);
Command setup_retarget(CLI::App& root);
Command setup_pack(CLI::App& root);
Command setup_unpack(CLI::App& root);
Command setup_list(CLI::App& root);
Command setup_demo(CLI::App& root);
Command setup_analyze(CLI::App& root);
Command setup_report(CLI::App& root);
Command setup_completion(CLI::App& root);
Command setup_doctor(CLI::App& root);
Command setup_help(CLI::App& root);
Command setup_man(CLI::App& root);
Command setup_launch(CLI::App& root);

}  // namespace quench::cli
