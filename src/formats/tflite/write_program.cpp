// SPDX-License-Identifier: Apache-2.0
// The bytes of a TFLite file out of its program.
#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <map>

#include "base/format.h"
#include "formats/tflite/program.h"
#include "formats/tflite/rows.h"
#include "formats/tflite/schema_generated.h"
#include "formats/tflite/types.h"

namespace quench::tflite {
namespace {

using flatbuffers::Offset;

class Writer {
 public:
  explicit Writer(const Program& program) : program_(program) {}

  std::string bytes() {
    // The first buffer is the empty one, which stands for all that is computed.
    buffers_.push_back(schema::CreateBuffer(out_));
    std::vector<Offset<schema::Tensor>> tensors;
    for (const TensorItem& item : program_.tensors) tensors.push_back(tensor(item));
    std::vector<Offset<schema::Operator>> ops;
    for (const OpItem& item : program_.ops) ops.push_back(op(item));
    const auto graph = schema::CreateSubGraph(out_, out_.CreateVector(tensors),
                                              out_.CreateVector(indices(program_.inputs)),
                                              out_.CreateVector(indices(program_.outputs)),
                                              out_.CreateVector(ops), out_.CreateString("main"));
    constexpr std::uint32_t kVersion = 3;
    const auto model =
        schema::CreateModel(out_, kVersion, out_.CreateVector(codes_), out_.CreateVector(&graph, 1),
                            out_.CreateString(program_.description), out_.CreateVector(buffers_));
    schema::FinishModelBuffer(out_, model);
    return {reinterpret_cast<const char*>(out_.GetBufferPointer()), out_.GetSize()};
  }

 private:
  static std::vector<std::int32_t> indices(const std::vector<int>& from) {
    return {from.begin(), from.end()};
  }

  std::uint32_t buffer(const Tensor& data) {
    constexpr std::size_t kMost = std::size_t{1} << 31;
    const auto bytes = data.bytes();
    if (out_.GetSize() + bytes.size() + kRoom >= kMost) {
      fail(ErrorKind::Unsupported, "a TFLite file has less than 2 GB, which the weights exceed");
    }
    constexpr std::size_t kAlign = 16;
    out_.ForceVectorAlignment(bytes.size(), 1, kAlign);
    const auto vector =
        out_.CreateVector(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    buffers_.push_back(schema::CreateBuffer(out_, vector));
    return static_cast<std::uint32_t>(buffers_.size() - 1);
  }

  Offset<schema::Quantization> quantization(const Quantization& given) {
    const auto scale = out_.CreateVector(given.scale);
    const auto zero = out_.CreateVector(given.zero_point);
    schema::QuantizationBuilder made(out_);
    made.add_scale(scale);
    made.add_zero_point(zero);
    made.add_quantized_dimension(static_cast<std::int32_t>(given.axis));
    return made.Finish();
  }

  Offset<schema::Tensor> tensor(const TensorItem& item) {
    const auto number = type_number(item.dtype);
    if (!number) {
      fail(ErrorKind::Unsupported, "the value '{}' is of {}, which TFLite does not have", item.name,
           info(item.dtype).name);
    }
    std::vector<std::int32_t> shape, signature;
    for (const std::int64_t dim : item.shape) {
      shape.push_back(dim < 0 ? 1 : static_cast<std::int32_t>(dim));
      signature.push_back(static_cast<std::int32_t>(dim));
    }
    const std::uint32_t data = item.data ? buffer(*item.data) : 0;
    const auto dims = out_.CreateVector(shape);
    const bool open = std::ranges::count(item.shape, -1) > 0;
    const auto open_dims = open ? out_.CreateVector(signature) : 0;
    const auto name = out_.CreateString(item.name);
    const auto scales = item.quantization.given() ? quantization(item.quantization) : 0;
    schema::TensorBuilder made(out_);
    made.add_shape(dims);
    made.add_type(static_cast<std::int8_t>(*number));
    made.add_buffer(data);
    made.add_name(name);
    if (item.quantization.given()) made.add_quantization(scales);
    if (open) made.add_shape_signature(open_dims);
    return made.Finish();
  }

  std::uint32_t code(const std::string& name, int version) {
    const auto key = std::pair{name, version};
    const auto found = code_of_.find(key);
    if (found != code_of_.end()) return found->second;
    const int number = operator_code(name);
    constexpr int kGreatest = 127;  // of the old field, which older runtimes read
    const bool custom = number < 0;
    codes_.push_back(schema::CreateOperatorCode(
        out_, static_cast<std::int8_t>(custom ? kCustom : std::min(number, kGreatest)),
        custom ? out_.CreateString(name) : 0, version, custom ? kCustom : number));
    const auto index = static_cast<std::uint32_t>(codes_.size() - 1);
    code_of_.emplace(key, index);
    return index;
  }

  Offset<schema::Operator> op(const OpItem& item) {
    const OpRow* row = find_row(item.name);
    const std::uint32_t number = code(item.name, item.version);
    const auto inputs = out_.CreateVector(indices(item.inputs));
    const auto outputs = out_.CreateVector(indices(item.outputs));
    const bool has_options = row != nullptr && row->options_type != 0;
    const Offset<schema::Any> options = has_options ? table(item, *row) : 0;
    schema::OperatorBuilder made(out_);
    made.add_opcode_index(number);
    made.add_inputs(inputs);
    made.add_outputs(outputs);
    if (has_options) {
      made.add_builtin_options_type(static_cast<std::uint8_t>(row->options_type));
      made.add_builtin_options(options);
    }
    return made.Finish();
  }

  /// The options as the row lists them; those that the operator does not name keep their default.
  Offset<schema::Any> table(const OpItem& item, const OpRow& row) {
    std::map<std::string_view, flatbuffers::uoffset_t> lists;
    for (const Option& each : item.options) {
      const auto* list = std::get_if<std::vector<std::int64_t>>(&each.data);
      if (list == nullptr) continue;
      const std::vector<std::int32_t> numbers(list->begin(), list->end());
      lists[each.name] = out_.CreateVector(numbers).o;
    }
    const flatbuffers::uoffset_t start = out_.StartTable();
    flatbuffers::voffset_t slot = 4;
    for (const OptionField& field : fields_of(row)) {
      const auto found = std::ranges::find(item.options, field.name, &Option::name);
      if (found != item.options.end()) add(slot, field, *found, lists);
      slot = static_cast<flatbuffers::voffset_t>(slot + 2);
    }
    return out_.EndTable(start);
  }

  void add(flatbuffers::voffset_t slot, const OptionField& field, const Option& option,
           const std::map<std::string_view, flatbuffers::uoffset_t>& lists) {
    if (field.type == 'v') {
      const auto found = lists.find(field.name);
      if (found != lists.end()) out_.AddOffset(slot, Offset<void>(found->second));
    } else if (field.type == 'f') {
      out_.AddElement(slot, static_cast<float>(std::get<double>(option.data)));
    } else if (field.type == 'i') {
      out_.AddElement(slot, static_cast<std::int32_t>(std::get<std::int64_t>(option.data)));
    } else {
      out_.AddElement(slot, static_cast<std::int8_t>(std::get<std::int64_t>(option.data)));
    }
  }

  static constexpr std::size_t kRoom = 1U << 20U;
  const Program& program_;
  flatbuffers::FlatBufferBuilder out_{1U << 20U};
  std::vector<Offset<schema::Buffer>> buffers_;
  std::vector<Offset<schema::OperatorCode>> codes_;
  std::map<std::pair<std::string, int>, std::uint32_t> code_of_;
};

}  // namespace

std::string write_program(const Program& program) { return Writer(program).bytes(); }

}  // namespace quench::tflite
