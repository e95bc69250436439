// SPDX-License-Identifier: Apache-2.0
// From a serialized ProgramDesc to a program.
#include <climits>

#include "base/format.h"
#include "formats/paddle/framework.pb.h"
#include "formats/paddle/program.h"
#include "formats/paddle/types.h"

namespace quench::paddle {
namespace {

constexpr std::int64_t kNewerMajor = 4;

template <typename List>
std::vector<std::int64_t> integers(const List& list) {
  return {list.begin(), list.end()};
}

template <typename List>
std::vector<double> floats(const List& list) {
  return {list.begin(), list.end()};
}

Attr::Data read_scalar(const Scalar& scalar) {
  switch (scalar.type()) {
    case Scalar::BOOLEAN:
      return static_cast<std::int64_t>(scalar.b());
    case Scalar::LONG:
      return scalar.i();
    case Scalar::FLOAT64:
      return scalar.r();
    default:
      return std::monostate();
  }
}

/// Integers where all are, else floats.
template <typename List>
Attr::Data read_scalars(const List& list) {
  std::vector<std::int64_t> whole;
  std::vector<double> any;
  for (const Scalar& each : list) {
    const Attr::Data value = read_scalar(each);
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      whole.push_back(*number);
      any.push_back(static_cast<double>(*number));
    } else if (const auto* real = std::get_if<double>(&value)) {
      any.push_back(*real);
    } else {
      return std::monostate();
    }
  }
  if (whole.size() == any.size()) return whole;
  return any;
}

Attr::Data read_data(const OpDesc::Attr& attr) {
  switch (attr.type()) {
    case INT:
      return std::int64_t{attr.i()};
    case LONG:
      return attr.l();
    case FLOAT:
      return double{attr.f()};
    case FLOAT64:
      return attr.float64();
    case STRING:
      return attr.s();
    case BOOLEAN:
      return attr.b();
    case INTS:
      return integers(attr.ints());
    case LONGS:
      return integers(attr.longs());
    case BOOLEANS:
      return integers(attr.bools());
    case FLOATS:
      return floats(attr.floats());
    case FLOAT64S:
      return floats(attr.float64s());
    case STRINGS:
      return std::vector<std::string>(attr.strings().begin(), attr.strings().end());
    case BLOCK:
      return BlockIndex{attr.block_idx()};
    case SCALAR:
      return read_scalar(attr.scalar());
    case SCALARS:
      return read_scalars(attr.scalars());
    default:
      return std::monostate();
  }
}

template <typename List>
std::vector<Argument> read_arguments(const List& list) {
  std::vector<Argument> result;
  for (const OpDesc::Var& each : list) {
    result.push_back({each.parameter(), {each.arguments().begin(), each.arguments().end()}});
  }
  return result;
}

OpItem read_op(const OpDesc& desc, int index) {
  OpItem op;
  op.type = desc.type();
  op.index = index;
  op.inputs = read_arguments(desc.inputs());
  op.outputs = read_arguments(desc.outputs());
  for (const OpDesc::Attr& attr : desc.attrs()) {
    // An "attribute" that is a tensor is an input under the attribute's name.
    if (attr.type() == VAR) {
      op.inputs.push_back({attr.name(), {attr.var_name()}});
    } else if (attr.type() == VARS) {
      op.inputs.push_back({attr.name(), {attr.vars_name().begin(), attr.vars_name().end()}});
    } else {
      op.attrs.push_back({attr.name(), read_data(attr)});
    }
  }
  return op;
}

VarItem read_var(const VarDesc& desc) {
  VarItem var;
  var.name = desc.name();
  const VarType& type = desc.type();
  const bool is_tensor = type.type() == VarType::LOD_TENSOR && type.has_lod_tensor();
  if (is_tensor) {
    const VarType::TensorDesc& tensor = type.lod_tensor().tensor();
    const TypeRow* row = type_row(tensor.data_type());
    if (row != nullptr) var.dtype = row->dtype;
    var.shape = Shape(tensor.dims().begin(), tensor.dims().end());
  }
  var.parameter = desc.persistable() && is_tensor;
  return var;
}

Block read_block(const BlockDesc& desc, int index, int num_blocks) {
  Block block;
  block.index = index;
  block.parent = index == 0 ? -1 : desc.parent_idx();
  if (index != 0 && (block.parent < 0 || block.parent >= num_blocks || block.parent == index)) {
    fail(ErrorKind::BadModel, "block {} says that block {} is around it, which cannot be", index,
         block.parent);
  }
  for (const VarDesc& each : desc.vars()) block.vars.push_back(read_var(each));
  for (int i = 0; i < desc.ops_size(); ++i) block.ops.push_back(read_op(desc.ops(i), i));
  return block;
}

std::string version_text(std::int64_t version) {
  if (version == 0) return "";
  return format("{}.{}.{}", version / 1'000'000, version / 1000 % 1000, version % 1000);
}

}  // namespace

const Attr* OpItem::find(std::string_view attribute) const noexcept {
  for (const Attr& each : attrs) {
    if (each.name == attribute) return &each;
  }
  return nullptr;
}

Program read_desc(std::span<const std::byte> file) {
  ProgramDesc desc;
  if (file.size() > INT_MAX || !desc.ParseFromArray(file.data(), static_cast<int>(file.size()))) {
    fail(ErrorKind::BadModel,
         "the file is cut off, damaged or no Paddle program: protobuf cannot read it");
  }
  if (desc.blocks_size() == 0) {
    fail(ErrorKind::BadModel, "the program has no block; it is damaged or no Paddle program");
  }
  const std::int64_t version = desc.version().version();
  if (version / 1'000'000 >= kNewerMajor) {
    fail(ErrorKind::Unsupported,
         "the program was written by Paddle {}, and versions up to 3 are known; export it with an "
         "older one",
         version_text(version));
  }
  Program program;
  program.version = version_text(version);
  for (int i = 0; i < desc.blocks_size(); ++i) {
    program.blocks.push_back(read_block(desc.blocks(i), i, desc.blocks_size()));
  }
  return program;
}

}  // namespace quench::paddle
