// SPDX-License-Identifier: Apache-2.0
// The table of next commands.
#include "cli/hints.h"

#include <array>
#include <optional>

#include "cli/style.h"

namespace quench::cli {
namespace {

struct Hint {
  std::string_view job;
  std::string_view what;
  std::string_view command;
};

// Of a job's rows the first is shown whose words are all known.
constexpr std::array kHints = {
    Hint{"quantize", "see it", "open {report} in a browser"},
    Hint{"quantize", "see where the error is",
         "quench quantize {model} ... --report report.html, or quench compare {out} {model}"},
    Hint{"target", "see how fast it is", "quench bench {model} {out}"},
    Hint{"train", "see it", "open {report} in a browser"},
    Hint{"train", "see what is left of the error", "quench compare {out} {model} --data {data}"},
    Hint{"train", "see what is left of the error", "quench compare {out} {model}"},
    Hint{"calibrate", "use it", "quench quantize {model} -o int8.onnx --stats {out}"},
    Hint{"eval", "see what it lost", "quench compare {model} {reference} --data {data}"},
    Hint{"eval", "make it smaller", "quench quantize {model} -o int8.onnx --data {data}"},
    Hint{"sensitivity", "leave it in float",
         "quench quantize {model} -o int8.onnx --data {data} --skip-node {layer}"},
    Hint{"statistics", "see it", "open {folder} and its PDF files"},
    Hint{"convert", "see it", "quench inspect {out}"},
    Hint{"bench", "see which layers take the time", "quench bench {model} --profile"},
    Hint{"compare", "rank the layers",
         "quench analyze sensitivity {model} --float {reference} --data {data}"},
    Hint{"compare", "see it on your own data", "quench compare {model} {reference} --data PATH"},
    Hint{"pack", "run it", "quench bench {out}"},
};

/// The command with words in their places; nothing where one is not known.
std::optional<std::string> filled(std::string_view command,
                                  const std::map<std::string, std::string>& words) {
  std::string text;
  while (!command.empty()) {
    const std::size_t open = command.find('{');
    text += command.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::size_t close = command.find('}', open);
    const auto word = words.find(std::string(command.substr(open + 1, close - open - 1)));
    if (word == words.end() || word->second.empty()) return std::nullopt;
    text += shell_word(word->second);
    command.remove_prefix(close + 1);
  }
  return text;
}

}  // namespace

void suggest_after(std::string_view job, const CommonFlags& flags,
                   const std::map<std::string, std::string>& words) {
  for (const Hint& hint : kHints) {
    if (hint.job != job) continue;
    const std::optional<std::string> command = filled(hint.command, words);
    if (!command) continue;
    suggest(flags, hint.what, *command);
    return;
  }
}

}  // namespace quench::cli
