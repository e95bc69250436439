// SPDX-License-Identifier: Apache-2.0
// Builds Paddle programs and their files for tests.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/paddle/framework.pb.h"
#include "formats/paddle/params.h"
#include "formats/paddle/types.h"
#include "quench/tensor.h"
#include "unit/formats/onnx_builder.h"

namespace quench::testing {

/// A program that grows by one operator a call.
class ProgramBuilder {
 public:
  using Names = std::vector<std::pair<std::string, std::vector<std::string>>>;

  ProgramBuilder() {
    auto& block = *program.add_blocks();
    block.set_idx(0);
    block.set_parent_idx(-1);
    program.mutable_version()->set_version(2006002);
    add_var("feed").mutable_type()->set_type(paddle::VarType::FEED_MINIBATCH);
    add_var("fetch").mutable_type()->set_type(paddle::VarType::FETCH_LIST);
    for (auto& var : *block.mutable_vars()) var.set_persistable(true);
  }

  paddle::VarDesc& add_var(const std::string& name) {
    auto& var = *program.mutable_blocks(0)->add_vars();
    var.set_name(name);
    return var;
  }

  paddle::VarDesc& tensor(const std::string& name, DType dtype, const Shape& shape) {
    auto& var = add_var(name);
    var.mutable_type()->set_type(paddle::VarType::LOD_TENSOR);
    auto& desc = *var.mutable_type()->mutable_lod_tensor()->mutable_tensor();
    desc.set_data_type(paddle::type_row(dtype)->number);
    for (const std::int64_t dim : shape) desc.add_dims(dim);
    return var;
  }

  void input(const std::string& name, const Shape& shape, DType dtype = DType::Float32) {
    tensor(name, dtype, shape);
    set(op("feed", {{"X", {"feed"}}}, {{"Out", {name}}}), "col", inputs_++);
  }

  void parameter(const std::string& name, const Tensor& value) {
    tensor(name, value.dtype(), value.shape()).set_persistable(true);
    parameters[name] = value;
  }

  void output(const std::string& name) {
    set(op("fetch", {{"X", {name}}}, {{"Out", {"fetch"}}}), "col", outputs_++);
  }

  paddle::OpDesc& op(const std::string& type, const Names& inputs, const Names& outputs) {
    auto& desc = *program.mutable_blocks(0)->add_ops();
    desc.set_type(type);
    for (const auto& [name, variables] : inputs) fill(*desc.add_inputs(), name, variables);
    for (const auto& [name, variables] : outputs) fill(*desc.add_outputs(), name, variables);
    return desc;
  }

  static void set(paddle::OpDesc& op, const std::string& name, int value) {
    auto& attr = *op.add_attrs();
    attr.set_name(name);
    attr.set_type(paddle::INT);
    attr.set_i(value);
  }

  std::string records() const {
    std::string bytes;
    for (const auto& [name, tensor] : parameters) {
      bytes += paddle::record_header(tensor);
      bytes.append(reinterpret_cast<const char*>(tensor.bytes().data()), tensor.bytes().size());
    }
    return bytes;
  }

  void write(const std::string& stem) const {
    write_bytes(stem + ".pdmodel", program.SerializeAsString());
    write_bytes(stem + ".pdiparams", records());
  }

  paddle::ProgramDesc program;
  std::map<std::string, Tensor> parameters;  ///< in the order of their records

 private:
  static void fill(paddle::OpDesc::Var& var, const std::string& name,
                   const std::vector<std::string>& variables) {
    var.set_parameter(name);
    for (const std::string& each : variables) var.add_arguments(each);
  }

  int inputs_ = 0;
  int outputs_ = 0;
};

/// y = relu(x + b) with b along the channels.
inline ProgramBuilder small_program() {
  ProgramBuilder builder;
  builder.input("x", {-1, 3, 4, 4});
  builder.parameter("conv.b_0", Tensor::of<float>({3}, {1, 2, 3}));
  builder.tensor("sum", DType::Float32, {-1, 3, 4, 4});
  builder.tensor("y", DType::Float32, {-1, 3, 4, 4});
  auto& add =
      builder.op("elementwise_add", {{"X", {"x"}}, {"Y", {"conv.b_0"}}}, {{"Out", {"sum"}}});
  ProgramBuilder::set(add, "axis", 1);
  builder.op("relu", {{"X", {"sum"}}}, {{"Out", {"y"}}});
  builder.output("y");
  return builder;
}

}  // namespace quench::testing
