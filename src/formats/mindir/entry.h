// SPDX-License-Identifier: Apache-2.0
// What a name stands for while a MindIR graph is read: a tensor, or a number, text or tuple that an
// operator takes as an argument.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/mindir/mind_ir.pb.h"
#include "quench/graph.h"

namespace quench::mindir {

struct Entry {
  enum class Kind { None, Int, Real, Text, List, Tensor, Value };
  Kind kind = Kind::None;
  std::int64_t number = 0;
  double real = 0;
  std::string text;
  std::vector<Entry> list;
  Tensor tensor;               ///< a constant that is no value of the graph yet
  ValueId value = kNoValue;    ///< of the graph
  std::optional<Shape> shape;  ///< what the file says that a value's is
};

using Entries = std::map<std::string, Entry, std::less<>>;

/// What an attribute holds; tuples within tuples only so deep.
Entry entry_of(const wire::Attribute& attribute, int depth = 0);
Entries entries_of(const google::protobuf::RepeatedPtrField<wire::Attribute>& attributes);

/// MindIR's numbers of element types: in tensors, and as arguments (of Cast).
DType dtype_of(int number) noexcept;
DType dtype_of_argument(std::int64_t number) noexcept;
int number_of(DType dtype);
std::int64_t argument_of(DType dtype);

Shape shape_of(const wire::TensorData& data);
/// The elements that lie in the message itself, or in `raw` of a file beside it.
Tensor tensor_of(const wire::TensorData& data, std::string_view raw);
Tensor tensor_of(const wire::TensorData& data);

}  // namespace quench::mindir
