// SPDX-License-Identifier: Apache-2.0
// Builds ONNX messages and files for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "formats/onnx/onnx.pb.h"
#include "quench/error.h"
#include "quench/model.h"

namespace quench::testing {

/// A folder of its own that goes away with the test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "quench.XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  /// The names of the files in it, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      result.push_back(entry.path().filename().string());
    }
    std::sort(result.begin(), result.end());
    return result;
  }

 private:
  std::filesystem::path path_;
};

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), std::ssize(bytes));
}

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline onnx::NodeProto& add_node(onnx::GraphProto& graph, const std::string& op,
                                 std::initializer_list<const char*> inputs,
                                 std::initializer_list<const char*> outputs) {
  onnx::NodeProto& node = *graph.add_node();
  for (const char* name : inputs) node.add_input(name);
  for (const char* name : outputs) node.add_output(name);
  node.set_op_type(op);
  return node;
}

inline onnx::ValueInfoProto float_value(const std::string& name,
                                        std::initializer_list<std::int64_t> dims) {
  onnx::ValueInfoProto info;
  info.set_name(name);
  auto& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(1);
  type.mutable_shape();
  for (const std::int64_t dim : dims) type.mutable_shape()->add_dim()->set_dim_value(dim);
  return info;
}

/// A float initializer of raw bytes.
inline onnx::TensorProto& add_weight(onnx::GraphProto& graph, const std::string& name,
                                     const std::vector<float>& values) {
  onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(1);
  tensor.add_dims(std::ssize(values));
  tensor.set_raw_data(values.data(), values.size() * sizeof(float));
  return tensor;
}

/// x -> Relu -> y, opset 17; a start for most tests.
inline onnx::ModelProto small_model() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  onnx::OperatorSetIdProto& opset = *model.add_opset_import();
  opset.set_domain("");
  opset.set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("g");
  *graph.add_input() = float_value("x", {2});
  *graph.add_output() = float_value("y", {2});
  add_node(graph, "Relu", {"x"}, {"y"}).set_name("relu");
  return model;
}

/// Loads serialized bytes through a file.
inline Model load_bytes(const std::string& bytes) {
  const Folder folder;
  write_bytes(folder / "model.onnx", bytes);
  return load(folder / "model.onnx");
}

inline Model load_proto(const onnx::ModelProto& proto) {
  return load_bytes(proto.SerializeAsString());
}

/// The message after reading and writing once, its fields in the order of their numbers.
inline std::string round_trip(const onnx::ModelProto& proto) {
  const Folder folder;
  save(load_proto(proto), folder / "out.onnx");
  const std::string written = read_bytes(folder / "out.onnx");
  onnx::ModelProto again;
  EXPECT_TRUE(again.ParseFromString(written));
  EXPECT_EQ(written.size(), proto.ByteSizeLong());
  return again.SerializeAsString();
}

/// The message of the error that loading gives; fails the test when there is none.
inline std::string load_error(const std::string& bytes, ErrorKind kind = ErrorKind::BadModel) {
  try {
    (void)load_bytes(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "loaded without an error";
  return {};
}

}  // namespace quench::testing
