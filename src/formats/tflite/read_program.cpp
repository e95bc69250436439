// SPDX-License-Identifier: Apache-2.0
// From the bytes of a TFLite file to its program. FlatBuffers' verifier bounds every table, vector
// and string; what they say of each other (indices, sizes of constants) is checked here.
#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>

#include "base/format.h"
#include "formats/tflite/program.h"
#include "formats/tflite/rows.h"
#include "formats/tflite/schema_generated.h"
#include "formats/tflite/types.h"
#include "formats/tidy.h"

namespace quench::tflite {
namespace {

constexpr int kMaxDepth = 16;
constexpr int kMaxTables = 4'000'000;
constexpr std::int64_t kMaxRank = 8;

flatbuffers::Verifier verifier_of(std::span<const std::byte> file) {
  return {reinterpret_cast<const std::uint8_t*>(file.data()), file.size(), kMaxDepth, kMaxTables};
}

const schema::Model& verified(std::span<const std::byte> file) {
  if (file.size() >= FLATBUFFERS_MAX_BUFFER_SIZE) {
    fail(ErrorKind::Unsupported, "the file has {} bytes; a TFLite file has less than 2 GB",
         file.size());
  }
  auto verifier = verifier_of(file);
  if (!verifier.VerifyBuffer<schema::Model>(schema::ModelIdentifier())) {
    fail(ErrorKind::BadModel,
         "the file is no sound TFLite model: a part of it points outside the file, or it was cut "
         "short; get it again");
  }
  return *flatbuffers::GetRoot<schema::Model>(file.data());
}

/// By bytes: the verifier bounds a vector, but lets one of eight-byte numbers begin at four.
template <typename T>
std::vector<T> to_vector(const flatbuffers::Vector<T>* from) {
  if (from == nullptr || from->size() == 0) return {};
  std::vector<T> result(from->size());
  std::memcpy(result.data(), from->Data(), result.size() * sizeof(T));
  return result;
}

template <typename T>
std::size_t size_of(const flatbuffers::Vector<T>* from) {
  return from == nullptr ? 0 : from->size();
}

class Reader {
 public:
  Reader(std::span<const std::byte> file, std::shared_ptr<const void> owner)
      : file_(file), owner_(std::move(owner)), model_(verified(file)) {}

  Program read() {
    if (size_of(model_.subgraphs()) == 0) fail(ErrorKind::BadModel, "the file has no subgraph");
    const schema::SubGraph& graph = *model_.subgraphs()->Get(0);
    expect_known(graph);
    Program program;
    if (model_.description() != nullptr) program.description = model_.description()->str();
    for (std::size_t i = 0; i < size_of(graph.tensors()); ++i) {
      program.tensors.push_back(tensor(*graph.tensors()->Get(static_cast<unsigned>(i)), i));
    }
    num_tensors_ = std::ssize(program.tensors);
    program.inputs = indices(graph.inputs(), "the subgraph's inputs", false);
    program.outputs = indices(graph.outputs(), "the subgraph's outputs", false);
    for (std::size_t i = 0; i < size_of(graph.operators()); ++i) {
      program.ops.push_back(op(*graph.operators()->Get(static_cast<unsigned>(i)), i));
    }
    return program;
  }

 private:
  struct Called {
    std::string name;
    bool custom = false;
  };

  Called called(const schema::Operator& op) const {
    if (op.opcode_index() >= size_of(model_.operator_codes())) {
      fail(ErrorKind::BadModel, "an operator has number {} of {} in the list of operators",
           op.opcode_index(), size_of(model_.operator_codes()));
    }
    const schema::OperatorCode& code = *model_.operator_codes()->Get(op.opcode_index());
    // Files of old have the number in a byte, newer ones in both places.
    const int number = std::max<int>(code.builtin_code(), code.deprecated_builtin_code());
    if (number != kCustom) return {operator_name(number), false};
    return {code.custom_code() == nullptr ? "" : code.custom_code()->str(), true};
  }

  static bool is_known(const Called& called) {
    const OpRow* row = find_row(called.name);
    return row != nullptr && row->custom == called.custom;
  }

  void expect_known(const schema::SubGraph& graph) const {
    std::map<std::string, int> missing;
    for (std::size_t i = 0; i < size_of(graph.operators()); ++i) {
      const Called op = called(*graph.operators()->Get(static_cast<unsigned>(i)));
      if (is_known(op)) continue;
      ++missing[op.custom ? format("the custom operator '{}'", op.name) : op.name];
    }
    if (missing.empty()) return;
    const std::vector<std::string> names = formats::counted(missing);
    fail(ErrorKind::Unsupported,
         "the model uses operators of TFLite that are not known: {}; cut the model before them, or "
         "export it without them (`quench list operators --format tflite`)",
         fmt::join(names, ", "));
  }

  std::vector<int> indices(const flatbuffers::Vector<std::int32_t>* from, std::string_view what,
                           bool optional) const {
    std::vector<int> result;
    for (const std::int32_t index : to_vector(from)) {
      if (index >= num_tensors_ || index < (optional ? -1 : 0)) {
        fail(ErrorKind::BadModel, "{} name tensor {}, but there are {}", what, index, num_tensors_);
      }
      result.push_back(index);
    }
    return result;
  }

  TensorItem tensor(const schema::Tensor& from, std::size_t index) const {
    TensorItem item;
    item.name = from.name() == nullptr ? "" : from.name()->str();
    if (item.name.empty()) item.name = format("tensor_{}", index);
    try {
      fill(item, from);
    } catch (Error& error) {
      throw error.in(format("tensor '{}'", item.name));
    }
    return item;
  }

  void fill(TensorItem& item, const schema::Tensor& from) const {
    item.dtype = dtype_of(from.type());
    if (item.dtype == DType::Undefined) {
      fail(ErrorKind::Unsupported, "elements of {} are not read", type_name(from.type()));
    }
    if (from.sparsity() != nullptr) {
      fail(ErrorKind::Unsupported,
           "its weights are stored sparsely, which is not read; export the model without sparsity");
    }
    if (from.is_variable()) {
      fail(ErrorKind::Unsupported,
           "it keeps its value from one run to the next, which is not read; export the model with "
           "its state as inputs and outputs");
    }
    item.shape = shape_of(from);
    item.quantization = quantization_of(from.quantization());
    check_quantization(item);
    item.data = constant(from, item);
    if (item.data && !item.quantized()) return;
    if (item.dtype == DType::Int16 && item.quantization.given()) {
      fail(ErrorKind::Unsupported,
           "it is quantised to 16 bits, which is not read; quantise activations to 8 bits");
    }
  }

  static Shape shape_of(const schema::Tensor& from) {
    Shape shape;
    for (const std::int32_t dim : to_vector(from.shape())) {
      if (dim < -1) fail(ErrorKind::BadModel, "it has a dimension of {}", dim);
      shape.push_back(dim);
    }
    if (std::ssize(shape) > kMaxRank) {
      fail(ErrorKind::Unsupported, "it has {} dimensions; at most {} are read", shape.size(),
           kMaxRank);
    }
    const auto open = to_vector(from.shape_signature());
    if (open.size() == shape.size()) {
      for (std::size_t i = 0; i < shape.size(); ++i) {
        if (open[i] == -1) shape[i] = -1;
      }
    }
    return shape;
  }

  static Quantization quantization_of(const schema::Quantization* from) {
    if (from == nullptr || size_of(from->scale()) == 0) return {};
    if (from->details_type() != 0) {
      fail(ErrorKind::Unsupported, "its quantisation is of a kind of its own, which is not read");
    }
    Quantization result{.scale = to_vector(from->scale()),
                        .zero_point = to_vector(from->zero_point()),
                        .axis = from->quantized_dimension()};
    if (result.zero_point.empty()) result.zero_point.assign(result.scale.size(), 0);
    return result;
  }

  static void check_quantization(const TensorItem& item) {
    const Quantization& given = item.quantization;
    if (!given.given()) return;
    const auto count = std::ssize(given.scale);
    const bool axis = given.axis >= 0 && given.axis < item.rank() &&
                      item.shape[static_cast<std::size_t>(given.axis)] == count;
    if (std::ssize(given.zero_point) != count || (count > 1 && !axis)) {
      fail(ErrorKind::BadModel, "it has {} scales and {} zero points along dimension {}", count,
           given.zero_point.size(), given.axis);
    }
    for (std::size_t i = 0; i < given.scale.size(); ++i) {
      if (std::isfinite(given.scale[i]) && given.scale[i] > 0) continue;
      // A bias of TensorFlow's own converter may have a scale of zero where the weights are zero.
      if (given.scale[i] == 0 && item.dtype == DType::Int32) continue;
      fail(ErrorKind::BadModel, "its scale {} is {}", i, given.scale[i]);
    }
    const std::int64_t low = item.dtype == DType::UInt8 ? 0 : -128;
    for (const std::int64_t zero : given.zero_point) {
      if (!item.quantized() || (zero >= low && zero <= low + 255)) continue;
      fail(ErrorKind::BadModel, "its zero point is {}, outside the integers of its type", zero);
    }
  }

  std::span<const std::byte> bytes_of(const schema::Buffer& buffer) const {
    if (size_of(buffer.data()) > 0) {
      return {reinterpret_cast<const std::byte*>(buffer.data()->data()), buffer.data()->size()};
    }
    if (buffer.offset() <= 1) return {};
    if (buffer.offset() > file_.size() || buffer.size() > file_.size() - buffer.offset()) {
      fail(ErrorKind::BadModel, "its data lie at {} and are {} bytes, past the end of the file",
           buffer.offset(), buffer.size());
    }
    return file_.subspan(buffer.offset(), buffer.size());
  }

  std::optional<Tensor> constant(const schema::Tensor& from, TensorItem& item) const {
    if (from.buffer() >= size_of(model_.buffers())) {
      if (from.buffer() == 0) return std::nullopt;
      fail(ErrorKind::BadModel, "it has buffer {}, but there are {}", from.buffer(),
           size_of(model_.buffers()));
    }
    const auto bytes = bytes_of(*model_.buffers()->Get(from.buffer()));
    const bool empty = std::ranges::count(item.shape, 0) > 0;
    // An empty buffer means: computed. An empty constant has one, too, and a buffer of its own.
    if (bytes.empty() && !(empty && from.buffer() != 0)) return std::nullopt;
    if (std::ranges::count(item.shape, -1) > 0) {
      fail(ErrorKind::BadModel, "it is a constant with an open dimension");
    }
    return whole_bytes(item, bytes);
  }

  /// Four-bit integers become bytes: the same numbers, which every operator here takes.
  Tensor whole_bytes(TensorItem& item, std::span<const std::byte> bytes) const {
    const Tensor tensor = Tensor::view(item.dtype, item.shape, bytes, owner_);
    if (item.dtype == DType::Int4) {
      item.dtype = DType::Int8;
      return convert(tensor, DType::Int8);
    }
    const auto width = static_cast<std::size_t>(info(item.dtype).bits / 8);
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % width == 0) return tensor;
    Tensor copy = Tensor::zeros(item.dtype, item.shape);
    std::memcpy(copy.mutable_bytes().data(), bytes.data(), bytes.size());
    return copy;
  }

  OpItem op(const schema::Operator& from, std::size_t index) const {
    OpItem item;
    item.name = called(from).name;
    item.index = static_cast<int>(index);
    const std::string where = format("operator {}, {}", index, item.name);
    item.inputs = indices(from.inputs(), format("the inputs of {}", where), true);
    item.outputs = indices(from.outputs(), format("the outputs of {}", where), false);
    if (size_of(from.custom_options()) > 0) {
      item.custom_options = {reinterpret_cast<const std::byte*>(from.custom_options()->data()),
                             from.custom_options()->size()};
    }
    try {
      item.options = options(from, *find_row(item.name));
    } catch (Error& error) {
      throw error.in(where);
    }
    return item;
  }

  std::vector<Option> options(const schema::Operator& from, const OpRow& row) const {
    const auto* table = reinterpret_cast<const flatbuffers::Table*>(from.builtin_options());
    if (row.custom || row.options_type == 0) table = nullptr;
    if (table != nullptr && from.builtin_options_type() != row.options_type) {
      fail(ErrorKind::BadModel, "its options are of kind {}, expected {}",
           from.builtin_options_type(), row.options_type);
    }
    std::vector<Option> result;
    flatbuffers::voffset_t slot = 4;
    for (const OptionField& field : fields_of(row)) {
      result.push_back({field.name, option(table, slot, field)});
      slot = static_cast<flatbuffers::voffset_t>(slot + 2);
    }
    return result;
  }

  template <typename T>
  T scalar(const flatbuffers::Table* table, flatbuffers::voffset_t slot,
           const OptionField& field) const {
    T otherwise{};
    if constexpr (std::is_same_v<T, float>) {
      if (!field.otherwise.empty()) otherwise = std::stof(std::string(field.otherwise));
    } else {
      std::from_chars(field.otherwise.data(), field.otherwise.data() + field.otherwise.size(),
                      otherwise);
    }
    if (table == nullptr) return otherwise;
    const auto verifier = verifier_of(file_);
    if (!table->VerifyField<T>(verifier, slot, sizeof(T))) {
      fail(ErrorKind::BadModel, "its option {} lies outside the file", field.name);
    }
    return table->GetField<T>(slot, otherwise);
  }

  decltype(Option::data) option(const flatbuffers::Table* table, flatbuffers::voffset_t slot,
                                const OptionField& field) const {
    switch (field.type) {
      case 'b':
        return std::int64_t{scalar<std::int8_t>(table, slot, field)};
      case 't':
        return std::int64_t{scalar<std::uint8_t>(table, slot, field) != 0};
      case 'f':
        return double{scalar<float>(table, slot, field)};
      case 'v':
        return numbers(table, slot, field);
      default:
        return std::int64_t{scalar<std::int32_t>(table, slot, field)};
    }
  }

  std::vector<std::int64_t> numbers(const flatbuffers::Table* table, flatbuffers::voffset_t slot,
                                    const OptionField& field) const {
    if (table == nullptr) return {};
    const auto verifier = verifier_of(file_);
    using List = flatbuffers::Vector<std::int32_t>;
    const auto* list =
        table->VerifyOffset(verifier, slot) ? table->GetPointer<const List*>(slot) : nullptr;
    if (!table->VerifyOffset(verifier, slot) || !verifier.VerifyVector(list)) {
      fail(ErrorKind::BadModel, "its option {} lies outside the file", field.name);
    }
    if (list == nullptr) return {};
    return {list->begin(), list->end()};
  }

  std::span<const std::byte> file_;
  std::shared_ptr<const void> owner_;
  const schema::Model& model_;
  std::int64_t num_tensors_ = 0;
};

}  // namespace

bool is_tflite(std::span<const std::byte> file) noexcept {
  constexpr std::size_t kAt = 4;
  return file.size() >= kAt + 4 &&
         std::memcmp(file.data() + kAt, schema::ModelIdentifier(), 4) == 0;
}

Program read_program(std::span<const std::byte> file, std::shared_ptr<const void> owner) {
  return Reader(file, std::move(owner)).read();
}

}  // namespace quench::tflite
