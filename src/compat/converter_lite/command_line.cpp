// SPDX-License-Identifier: Apache-2.0
// converter_lite's command line.
#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/format.h"
#include "base/nearest.h"
#include "compat/converter_lite/model_edits.h"
#include "quench/converter_lite.h"
#include "quench/formats.h"

namespace quench {
namespace {

using Names = std::vector<std::string>;

bool has(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

const std::string& value_of(const ConverterFlags& flags, const std::string& name) {
  static const std::string none;
  const auto found = flags.find(name);
  return found == flags.end() ? none : found->second;
}

void check_flag(const ConverterFlag& flag, const std::string& word) {
  const bool any = flag.done.empty() && flag.known.empty() && flag.reason.empty();
  if (word.empty() || any || has(flag.done, word)) return;
  if (has(flag.known, word)) {
    fail(ErrorKind::Unsupported, "--{}={} is not supported: {}", flag.name, word, flag.reason);
  }
  Names all = flag.done;
  all.insert(all.end(), flag.known.begin(), flag.known.end());
  if (all.empty()) {
    fail(ErrorKind::Unsupported, "--{} is not supported: {}", flag.name, flag.reason);
  }
  fail(ErrorKind::Usage, "--{} takes one of {}; got '{}'{}", flag.name, fmt::join(all, ", "), word,
       did_you_mean(word, all));
}

bool is_channels_last(const ConverterFlags& flags) {
  const std::string& fmk = value_of(flags, "fmk");
  return fmk == "TFLITE" || fmk == "TF";
}

/// What is not read, with the command that makes of it what is.
void check_framework(const ConverterFlags& flags) {
  if (value_of(flags, "fmk") != "PYTORCH") return;
  const std::filesystem::path model = value_of(flags, "modelFile");
  const std::string onnx = std::filesystem::path(model).replace_extension(".onnx").string();
  fail(ErrorKind::Unsupported,
       "--fmk=PYTORCH is not supported: TorchScript is not read; run python3 -c \"import torch; "
       "torch.onnx.export(torch.jit.load('{}'), torch.zeros(1, 3, 224, 224), '{}')\" with the "
       "shape of the model's input, then convert with --fmk=ONNX --modelFile={}",
       model.string(), onnx, onnx);
}

/// Whether --inputDataFormat asks for another layout than the model's own.
bool moves_channels(const ConverterFlags& flags) {
  const std::string& wanted = value_of(flags, "inputDataFormat");
  return wanted == (is_channels_last(flags) ? "NCHW" : "NHWC");
}

/// What changes the model itself is done where it is only read and written.
void check_edits(const ConverterFlags& flags) {
  if (value_of(flags, "configFile").empty()) return;
  const bool half = value_of(flags, "fp16") == "on";
  // NCHW says, for models with channels first and last alike, how BIN files are laid out.
  const bool moved = value_of(flags, "inputDataFormat") == "NHWC" && moves_channels(flags);
  if (!half && !moved) return;
  fail(ErrorKind::Unsupported,
       "--{} is not supported together with --configFile: convert the model with it first, and "
       "quantise the result",
       half ? "fp16=on" : "inputDataFormat=NHWC");
}

void check_flags(const ConverterFlags& flags) {
  check_framework(flags);
  for (const ConverterFlag& flag : converter_flags()) {
    check_flag(flag, value_of(flags, std::string(flag.name)));
  }
  const std::string& fmk = value_of(flags, "fmk");
  if (!value_of(flags, "weightFile").empty() && fmk != "CAFFE" && fmk != "PADDLE") {
    fail(ErrorKind::Usage,
         "--weightFile is for --fmk=CAFFE and PADDLE; {} models hold their weights", fmk);
  }
  check_edits(flags);
  const std::string& out = value_of(flags, "outputFile");
  if (out.ends_with('/') || out.ends_with('\\')) {
    fail(ErrorKind::Usage, "--outputFile takes a file, not a folder; got '{}'", out);
  }
}

/// "1,32,32,4", or nothing.
std::optional<Shape> parse_shape(std::string_view text) {
  Shape shape;
  while (true) {
    const std::string_view part = text.substr(0, text.find(','));
    std::int64_t dim = -1;
    const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), dim);
    if (error != std::errc{} || stop != part.data() + part.size() || dim < 0) return std::nullopt;
    shape.push_back(dim);
    if (part.size() == text.size()) return shape;
    text.remove_prefix(part.size() + 1);
  }
}

/// "name:1,32,32,4;name2:1,8"; a name may itself hold ':'.
std::map<std::string, Shape> parse_input_shapes(std::string_view rest) {
  std::map<std::string, Shape> shapes;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(';'), rest.size());
    const std::string_view item = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (item.empty()) continue;
    const std::size_t colon = item.rfind(':');
    const bool named = colon != std::string_view::npos && colon > 0;
    const auto shape = named ? parse_shape(item.substr(colon + 1)) : std::nullopt;
    if (!shape) {
      fail(ErrorKind::Usage, "--inputShape takes name:1,32,32,4;name2:1,8; got '{}'", item);
    }
    if (!shapes.emplace(item.substr(0, colon), *shape).second) {
      fail(ErrorKind::Usage, "--inputShape names '{}' twice", item);
    }
  }
  return shapes;
}

/// The target that --optimize or --device asks for, or "".
std::string target_of(const ConverterFlags& flags) {
  const std::string& device = value_of(flags, "device");
  if (!device.empty()) return device == "GPU" ? "tensorrt" : "ascend";
  const std::string& optimize = value_of(flags, "optimize");
  const std::string word = optimize.substr(0, optimize.find(':'));
  static const Names words = {"", "none", "general", "gpu_oriented", "ascend_oriented"};
  if (!has(words, word)) {
    fail(ErrorKind::Usage,
         "--optimize takes none, general, gpu_oriented or ascend_oriented[:chip]; got '{}'{}",
         optimize, did_you_mean(word, words));
  }
  if (word == "gpu_oriented") return "tensorrt";
  return word == "ascend_oriented" ? "ascend" : "";
}

constexpr const char* kEncrypted = "models are not encrypted";

/// Flags that take one of a few words.
std::vector<ConverterFlag> word_flags() {
  static const Names layouts = {"NHWC"};
  static const Names types = {"FLOAT16", "INT8", "UINT8", "INT32", "INT64"};
  static const Names floats = {"DEFAULT", "FLOAT", "FLOAT32"};
  return {
      {"fmk",
       "WORD",
       "Format of the model: ONNX, TFLITE, TF, CAFFE, MINDIR or PADDLE",
       {"ONNX", "TFLITE", "TF", "CAFFE", "MINDIR", "PADDLE"},
       {"PYTORCH", "MSLITE", "OM"},
       "it is compiled for a runtime of its own; take the model that it was made from",
       true},
      {"inputDataFormat",
       "WORD",
       "Layout of 4-D inputs and of their BIN files",
       {"NCHW", "NHWC"},
       {},
       ""},
      {"outputDataFormat",
       "WORD",
       "Layout of 4-D outputs",
       {"NCHW"},
       layouts,
       "outputs keep their layout"},
      {"inputDataType", "WORD", "Type of the inputs", floats, types, "inputs keep their type"},
      {"outputDataType", "WORD", "Type of the outputs", floats, types, "outputs keep their type"},
      {"fp16", "WORD", "Store constants as fp16", {"off", "on"}, {}, ""},
      {"device", "WORD", "Where it will run", {"GPU", "Ascend", "Ascend310", "Ascend310P"}, {}, ""},
      {"saveType",
       "WORD",
       "Format of the result: MINDIR; ONNX where it is left out",
       {"MINDIR"},
       {"MINDIR_LITE"},
       ".ms files are not written; leave it out for ONNX, or take MINDIR"},
      {"encryption", "WORD", "Encrypt the result", {"false"}, {"true"}, kEncrypted},
      {"trainModel", "WORD", "Keep it trainable", {"false"}, {"true"}, "models are not trained"},
      {"infer", "WORD", "Run it once", {"false"}, {"true"}, "run the result with quench run"},
      {"optimizeTransformer",
       "WORD",
       "Fuse attention",
       {"false"},
       {"true"},
       "attention is not fused"},
  };
}

}  // namespace

const std::vector<ConverterFlag>& converter_flags() {
  static const std::vector<ConverterFlag> all = [] {
    std::vector<ConverterFlag> flags = {
        {.name = "modelFile", .value = "FILE", .help = "Model file", .required = true},
        {.name = "outputFile",
         .value = "FILE",
         .help = "Result; .onnx is added where it does not end so, .qnch for mixed bits, .mindir "
                 "for --saveType=MINDIR",
         .required = true},
        {.name = "configFile", .value = "INI", .help = "INI file that says how to quantise"},
        {.name = "inputShape",
         .value = "SHAPES",
         .help = "Shapes of inputs, as name:1,32,32,4;name2:1,8"},
        {.name = "optimize",
         .value = "WORD",
         .help = "none, general, gpu_oriented or ascend_oriented[:chip]"},
        {.name = "weightFile",
         .value = "FILE",
         .help = "CAFFE: the .caffemodel of a .prototxt; PADDLE: the parameters"},
        {.name = "encryptKey",
         .value = "TEXT",
         .help = "Not for ONNX models",
         .reason = kEncrypted},
        {.name = "decryptKey",
         .value = "TEXT",
         .help = "Not for ONNX models",
         .reason = kEncrypted},
        {.name = "decryptMode",
         .value = "TEXT",
         .help = "Not for ONNX models",
         .reason = kEncrypted},
    };
    const std::vector<ConverterFlag> words = word_flags();
    flags.insert(flags.end(), words.begin(), words.end());
    return flags;
  }();
  return all;
}

QuantizeOptions converter_options(const ConverterFlags& flags) {
  check_flags(flags);
  QuantizeOptions base;
  base.type = QuantType::None;
  const std::string target = target_of(flags);
  if (!target.empty()) base.config.target = target;
  base.input_shapes = parse_input_shapes(value_of(flags, "inputShape"));
  // Raw files lie as the model's own format has it, which is the layout of the model's inputs; for
  // ONNX and Paddle converter_lite's rule holds, NHWC.
  const std::string& fmk = value_of(flags, "fmk");
  const bool own = fmk == "TFLITE" || fmk == "CAFFE" || fmk == "TF" || fmk == "MINDIR";
  if (own || value_of(flags, "inputDataFormat") == "NCHW") {
    base.data.bin_layout = BinLayout::Input;
  }
  const std::string& config = value_of(flags, "configFile");
  return config.empty() ? base : read_config(config, base);
}

std::string converter_model(const ConverterFlags& flags) {
  const std::string& model = value_of(flags, "modelFile");
  const std::string& weights = value_of(flags, "weightFile");
  const std::string path =
      weights.empty() ? model : model + "," + std::filesystem::absolute(weights).string();
  static const std::map<std::string, Names, std::less<>> formats = {
      {"ONNX", {"onnx", "packed"}}, {"TFLITE", {"tflite"}}, {"TF", {"tf"}},
      {"MINDIR", {"mindir"}},       {"CAFFE", {"caffe"}},   {"PADDLE", {"paddle", "pir"}}};
  const auto wanted = formats.find(value_of(flags, "fmk"));
  const std::string_view found = model_format(path);
  if (wanted == formats.end() || found.empty() || has(wanted->second, found)) return path;
  fail(ErrorKind::Usage, "--fmk={}, but '{}' is a model of the format {}", wanted->first, model,
       found);
}

void edit_model(Model& model, const ConverterFlags& flags) {
  if (moves_channels(flags)) move_input_channels(model, !is_channels_last(flags));
  if (value_of(flags, "fp16") == "on" && !store_half(model)) {
    fail(
        ErrorKind::Usage,
        "--fp16=on would change nothing: the model has no float weights that half precision holds");
  }
}

std::string converter_output(const ConverterFlags& flags, const QuantizeOptions& options) {
  const std::string& out = value_of(flags, "outputFile");
  const bool mindir = value_of(flags, "saveType") == "MINDIR";
  const std::string wanted = mindir ? "MindIR" : "ONNX";
  // "v1.5" is no suffix; those of formats that are not written are refused.
  static const Names others = {".ms", ".om", ".pb", ".pt", ".ort", ".caffemodel", ".prototxt"};
  const std::string extension = std::filesystem::path(out).extension().string();
  const auto known = std::ranges::any_of(
      model_formats(), [&](const FormatName& each) { return out.ends_with(each.extension); });
  if (has(others, extension) || (mindir && known && extension != ".mindir")) {
    fail(ErrorKind::Usage,
         "--outputFile '{}' ends in {}, but {} is written; leave the suffix out, or take {}", out,
         extension, wanted, mindir ? ".mindir" : ".onnx");
  }
  if (known) return out;
  if (mindir) return out + ".mindir";
  const bool mixed = options.type == QuantType::Weight && options.weight.bits == 0;
  return out + (mixed ? ".qnch" : ".onnx");
}

}  // namespace quench
