// SPDX-License-Identifier: Apache-2.0
// quench convert: the command lines of converter_lite.
#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/errors.h"
#include "cli/parse.h"
#include "cli/quantize_report.h"
#include "cli/table.h"
#include "quench/converter_lite.h"
#include "quench/formats.h"
#include "quench/jobs.h"
#include "quench/nearest.h"

namespace quench::cli {
namespace {

using Names = std::vector<std::string>;

/// A flag that takes one of a few words: those that are done here, and those that are not.
struct Choice {
  const char* flag;
  const char* help;
  Names done;
  Names known;
  const char* reason;  ///< why the others are not done
};

const std::vector<Choice>& choices() {
  static const Names layouts = {"NHWC"};
  static const Names types = {"FLOAT16", "INT8", "UINT8", "INT32", "INT64"};
  static const std::vector<Choice> all = {
      {"fmk",
       "Format of the model: ONNX",
       {"ONNX"},
       {"TF", "TFLITE", "CAFFE", "MINDIR", "PYTORCH", "MSLITE", "OM"},
       "only ONNX models are read"},
      {"inputDataFormat",
       "Layout of 4-D inputs and of their BIN files",
       {"NCHW"},
       layouts,
       "inputs keep their layout; BIN files are read as NHWC where the flag is left out"},
      {"outputDataFormat", "Layout of 4-D outputs", {"NCHW"}, layouts, "outputs keep their layout"},
      {"inputDataType",
       "Type of the inputs",
       {"DEFAULT", "FLOAT", "FLOAT32"},
       types,
       "inputs keep their type"},
      {"outputDataType",
       "Type of the outputs",
       {"DEFAULT", "FLOAT", "FLOAT32"},
       types,
       "outputs keep their type"},
      {"fp16", "Store constants as fp16", {"off"}, {"on"}, "constants are not stored as fp16"},
      {"device", "Where it will run", {"GPU", "Ascend", "Ascend310", "Ascend310P"}, {}, ""},
      {"saveType", "Format of the result", {}, {"MINDIR", "MINDIR_LITE"}, "ONNX is written"},
      {"encryption", "Encrypt the result", {"false"}, {"true"}, "models are not encrypted"},
      {"trainModel", "Keep it trainable", {"false"}, {"true"}, "models are not trained"},
      {"infer", "Run it once", {"false"}, {"true"}, "run the result with quench run"},
      {"optimizeTransformer", "Fuse attention", {"false"}, {"true"}, "attention is not fused"},
  };
  return all;
}

struct ConvertFlags {
  std::string model;
  std::string out;
  std::string config;
  std::string shapes;
  std::string optimize;
  std::map<std::string, std::string> words;  ///< flags of `choices`
  std::map<std::string, std::string> keys;   ///< flags that have no meaning for ONNX
  CommonFlags common;
};

[[noreturn]] void refuse(ErrorKind kind, const std::string& sentence) {
  throw Error(kind, sentence);
}

bool has(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void check_choice(const Choice& choice, const std::string& word) {
  if (word.empty() || has(choice.done, word)) return;
  if (has(choice.known, word)) {
    refuse(ErrorKind::Unsupported,
           fmt::format("--{}={} is not supported: {}", choice.flag, word, choice.reason));
  }
  Names all = choice.done;
  all.insert(all.end(), choice.known.begin(), choice.known.end());
  refuse(ErrorKind::Usage, fmt::format("--{} takes one of {}; got '{}'{}", choice.flag,
                                       fmt::join(all, ", "), word, did_you_mean(word, all)));
}

void check_flags(const ConvertFlags& flags) {
  for (const Choice& choice : choices()) check_choice(choice, flags.words.at(choice.flag));
  if (!flags.keys.at("weightFile").empty()) {
    refuse(ErrorKind::Usage, "--weightFile is for --fmk=CAFFE only");
  }
  for (const char* flag : {"encryptKey", "decryptKey", "decryptMode"}) {
    if (!flags.keys.at(flag).empty()) {
      refuse(ErrorKind::Unsupported,
             fmt::format("--{} is not supported: models are not encrypted", flag));
    }
  }
  if (flags.out.ends_with('/') || flags.out.ends_with('\\')) {
    refuse(ErrorKind::Usage,
           fmt::format("--outputFile takes a file, not a folder; got '{}'", flags.out));
  }
}

/// "name:1,32,32,4;name2:1,8"; a name may itself hold ':'.
std::map<std::string, Shape> parse_input_shapes(const std::string& text) {
  std::map<std::string, Shape> shapes;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(';'), rest.size());
    const std::string item(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (item.empty()) continue;
    const std::size_t colon = item.rfind(':');
    if (colon == std::string::npos || colon == 0) {
      refuse(ErrorKind::Usage,
             fmt::format("--inputShape takes name:1,32,32,4;name2:1,8; got '{}'", item));
    }
    const bool added =
        shapes.emplace(item.substr(0, colon), parse_shape("--inputShape", item.substr(colon + 1)))
            .second;
    if (!added) refuse(ErrorKind::Usage, fmt::format("--inputShape names '{}' twice", item));
  }
  return shapes;
}

/// The target that --optimize or --device asks for, or "".
std::string target_of(const ConvertFlags& flags) {
  const std::string& device = flags.words.at("device");
  if (!device.empty()) return device == "GPU" ? "tensorrt" : "ascend";
  const std::string word = flags.optimize.substr(0, flags.optimize.find(':'));
  static const Names words = {"", "none", "general", "gpu_oriented", "ascend_oriented"};
  if (!has(words, word)) {
    refuse(ErrorKind::Usage, fmt::format("--optimize takes none, general, gpu_oriented or "
                                         "ascend_oriented[:chip]; got '{}'{}",
                                         flags.optimize, did_you_mean(word, words)));
  }
  if (word == "gpu_oriented") return "tensorrt";
  return word == "ascend_oriented" ? "ascend" : "";
}

QuantizeOptions options_of(const ConvertFlags& flags) {
  QuantizeOptions base;
  base.type = QuantType::None;
  const std::string target = target_of(flags);
  if (!target.empty()) base.config.target = target;
  base.input_shapes = parse_input_shapes(flags.shapes);
  if (flags.words.at("inputDataFormat") == "NCHW") base.data.bin_layout = BinLayout::Input;
  return flags.config.empty() ? base : read_config(flags.config, base);
}

/// As converter_lite, which adds its suffix to whatever it is given: "v1.5" is no suffix. Those of
/// other formats are refused: ONNX is written.
/// Mixed bits are few only in a packed file, as converter_lite's are only in its own encoding.
std::string out_path(const ConvertFlags& flags, const QuantizeOptions& options) {
  for (const FormatName& format : model_formats()) {
    if (flags.out.ends_with(format.extension)) return flags.out;
  }
  static const Names others = {".ms", ".mindir", ".om",       ".tflite",     ".pb",
                               ".pt", ".ort",    ".prototxt", ".caffemodel", ".pdmodel"};
  const std::string extension = std::filesystem::path(flags.out).extension().string();
  if (has(others, extension)) {
    refuse(ErrorKind::Usage, fmt::format("--outputFile '{}' ends in {}, but ONNX is written; "
                                         "leave the suffix out, or take .onnx",
                                         flags.out, extension));
  }
  const bool mixed = options.type == QuantType::Weight && options.weight.bits == 0;
  return flags.out + (mixed ? ".qnch" : ".onnx");
}

/// Reads and writes; what there is to report is the size.
QuantizeReport copy_model(const std::string& from, const std::string& to,
                          const QuantizeOptions& options, Outputs& outputs) {
  reads_model(outputs, from, "the model");
  writes_model(outputs, to, "the result");
  Model model = load(from);
  set_input_shapes(model, options.input_shapes);
  QuantizeReport report;
  report.bytes_before = inspect(from).bytes_on_disk;
  report.bytes_after = static_cast<std::int64_t>(save(model, to, {}, outputs));
  report.warnings = options.notes;
  return report;
}

void tell(const ConvertFlags& flags, const QuantizeOptions& options, const std::string& out,
          const QuantizeReport& report) {
  const bool quantised = options.type != QuantType::None;
  if (flags.common.json) {
    Json json = {{"model", flags.model}, {"out", out}, {"quantised", quantised}};
    json.update(quantised ? to_json(report)
                          : Json{{"bytes_before", report.bytes_before},
                                 {"bytes_after", report.bytes_after},
                                 {"warnings", report.warnings}});
    return print_json(json);
  }
  if (quantised) {
    print_report(report);
    print("\n");
  } else {
    print("not quantised: no configuration file names a quant_type\n");
  }
  print(fmt::format("{}: {} from {}\n", out, human_bytes(report.bytes_after),
                    human_bytes(report.bytes_before)));
  print("CONVERT RESULT SUCCESS:0\n");
}

int run_convert(const ConvertFlags& flags) {
  check_flags(flags);
  const QuantizeOptions options = options_of(flags);
  const std::string out = out_path(flags, options);
  ProgressBar bar;
  Context context = make_context(flags.common, bar);
  if (context.log) {
    context.log = [log = context.log](LogLevel level, std::string_view line) {
      log(level, in_converter_words(line));
    };
  }
  QuantizeReport report;
  Outputs outputs;
  outputs.reads(flags.config, "the settings");
  try {
    report = options.type == QuantType::None
                 ? copy_model(flags.model, out, options, outputs)
                 : quantize(flags.model, out, options, context, outputs);
    outputs.commit();
  } catch (const Error& error) {
    throw Error(error.kind(), in_converter_words(error.what()));
  }
  bar.clear();
  for (std::string& warning : report.warnings) {
    context.warn(warning);
    warning = in_converter_words(warning);
  }
  tell(flags, options, out, report);
  return kOk;
}

}  // namespace

Command setup_convert(CLI::App& root) {
  CLI::App* app = add_verb(root, "convert", "Take a command line of converter_lite",
                           "quench convert --fmk=ONNX --modelFile=model.onnx --outputFile=copy");
  auto flags = std::make_shared<ConvertFlags>();
  app->add_option("--modelFile", flags->model, "Model file")->required()->type_name("FILE");
  app->add_option("--outputFile", flags->out,
                  "Result; .onnx is added where it does not end so, .qnch for mixed bits")
      ->required()
      ->type_name("FILE");
  app->add_option("--configFile", flags->config, "INI file that says how to quantise")
      ->type_name("INI");
  app->add_option("--inputShape", flags->shapes, "Shapes of inputs, as name:1,32,32,4;name2:1,8")
      ->type_name("SHAPES");
  app->add_option("--optimize", flags->optimize,
                  "none, general, gpu_oriented or ascend_oriented[:chip]")
      ->type_name("WORD");
  for (const Choice& choice : choices()) {
    CLI::Option* option =
        app->add_option(std::string("--") + choice.flag, flags->words[choice.flag], choice.help);
    option->type_name("WORD")->required(std::string_view(choice.flag) == "fmk");
  }
  for (const char* flag : {"weightFile", "encryptKey", "decryptKey", "decryptMode"}) {
    app->add_option(std::string("--") + flag, flags->keys[flag], "Not for ONNX models")
        ->type_name("TEXT");
  }
  add_common_flags(*app, flags->common, Work::Runs);
  return {app, [flags] { return run_convert(*flags); }};
}

}  // namespace quench::cli
