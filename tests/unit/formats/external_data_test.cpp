// SPDX-License-Identifier: Apache-2.0
// Weights in a file beside the model: read, kept apart, and never fetched from elsewhere.
#include <gtest/gtest.h>

#include "base/file.h"
#include "formats/onnx/file.h"
#include "unit/formats/onnx_builder.h"

namespace quench::testing {
namespace {

namespace fs = std::filesystem;

onnx::ModelProto external_model(const std::string& location, const std::string& offset,
                                const std::string& length) {
  onnx::ModelProto model = small_model();
  onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(1);
  tensor.add_dims(2);
  tensor.set_data_location(1);
  for (const auto& [key, value] : {std::pair("location", location), std::pair("offset", offset),
                                   std::pair("length", length)}) {
    if (value.empty()) continue;
    tensor.add_external_data()->set_key(key);
    tensor.mutable_external_data(tensor.external_data_size() - 1)->set_value(value);
  }
  return model;
}

std::string two_floats(float first, float second) {
  const float values[] = {first, second};
  return {reinterpret_cast<const char*>(values), sizeof(values)};
}

class ExternalData : public ::testing::Test {
 protected:
  /// Writes the model and gives the message of loading it, or "".
  std::string error_of(const onnx::ModelProto& model, ErrorKind kind = ErrorKind::BadModel) {
    write_bytes(folder_ / "model.onnx", model.SerializeAsString());
    try {
      (void)load(folder_ / "model.onnx");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      return error.what();
    }
    return "";
  }

  static void expect_words(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words) {
      EXPECT_NE(text.find(word), std::string::npos) << "'" << text << "' lacks " << word;
    }
  }

  /// A model whose weight of `count` floats counts up from 0.
  static Model big_model(std::size_t count, ConstantForm form) {
    Model model = load_proto(small_model());
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
    const ValueId id = model.graph.add_constant(
        "w", Tensor::of<float>({static_cast<std::int64_t>(count)}, values));
    model.graph[id].form = form;
    return model;
  }

  Folder folder_;
};

TEST_F(ExternalData, IsReadFromItsOffset) {
  write_bytes(folder_ / "weights.bin", std::string(8, 'x') + two_floats(1.5F, 2.5F));
  write_bytes(folder_ / "model.onnx", external_model("weights.bin", "8", "8").SerializeAsString());
  const Model model = load(folder_ / "model.onnx");
  const Value& value = model.graph[model.graph.find("w")];
  EXPECT_EQ(value.constant->data<float>()[1], 2.5F);
  EXPECT_EQ(value.form, ConstantForm::External);
}

TEST_F(ExternalData, WithoutLengthOrOffset) {
  write_bytes(folder_ / "weights.bin", two_floats(1.5F, 2.5F));
  EXPECT_EQ(error_of(external_model("weights.bin", "", "")), "");
}

TEST_F(ExternalData, InASubfolder) {
  fs::create_directory(folder_ / "data");
  write_bytes(folder_ / "data/weights.bin", two_floats(1, 2));
  EXPECT_EQ(error_of(external_model("data/weights.bin", "0", "8")), "");
}

TEST_F(ExternalData, MissingFileIsNamed) {
  expect_words(error_of(external_model("gone.bin", "0", "8"), ErrorKind::Io),
               {"model.onnx", "'w'", "gone.bin", "missing"});
}

TEST_F(ExternalData, PathsThatLeaveTheFolderAreRefused) {
  const Folder elsewhere;
  write_bytes(elsewhere / "secret.bin", two_floats(1, 2));
  for (const std::string& path : {elsewhere / "secret.bin", std::string("../secret.bin"),
                                  std::string("a/../../secret.bin")}) {
    expect_words(error_of(external_model(path, "0", "8")), {"outside", "'w'"});
  }
  fs::create_symlink(elsewhere / "secret.bin", folder_ / "link.bin");
  expect_words(error_of(external_model("link.bin", "0", "8")), {"outside", "link.bin"});
  fs::create_directory_symlink(fs::path(elsewhere / "secret.bin").parent_path(),
                               folder_ / "linked");
  expect_words(error_of(external_model("linked/secret.bin", "0", "8")), {"outside"});
}

TEST_F(ExternalData, RangesOutsideTheFileAreRefused) {
  write_bytes(folder_ / "weights.bin", two_floats(1, 2));
  expect_words(error_of(external_model("weights.bin", "1", "8")), {"'w'", "weights.bin"});
  expect_words(error_of(external_model("weights.bin", "18446744073709551615", "8")), {"'w'"});
  expect_words(error_of(external_model("weights.bin", "0", "4")), {"'w'", "4 bytes", "take 8"});
  expect_words(error_of(external_model("weights.bin", "-1", "8")), {"'w'", "offset"});
  expect_words(error_of(external_model("weights.bin", "0", "8x")), {"'w'", "length"});
  expect_words(error_of(external_model("", "0", "8")), {"'w'", "names no file"});
}

TEST_F(ExternalData, StaysExternal) {
  write_bytes(folder_ / "weights.bin", two_floats(1.5F, 2.5F));
  write_bytes(folder_ / "model.onnx", external_model("weights.bin", "0", "8").SerializeAsString());
  save(load(folder_ / "model.onnx"), folder_ / "out.onnx");
  EXPECT_EQ(read_bytes(folder_ / "out.onnx.data"), two_floats(1.5F, 2.5F));
  fs::remove(folder_ / "weights.bin");
  const Model model = load(folder_ / "out.onnx");
  EXPECT_EQ(model.graph.constant(model.graph.find("w"))->data<float>()[0], 1.5F);
}

TEST_F(ExternalData, CanBeTakenInside) {
  save(big_model(1000, ConstantForm::External), folder_ / "out.onnx",
       {.data = SaveOptions::Data::Inside});
  EXPECT_EQ(folder_.names(), std::vector<std::string>{"out.onnx"});
}

TEST_F(ExternalData, GoesWithTheModelThatNamedIt) {
  const Model model = big_model(1000, ConstantForm::Raw);
  const auto write = [&](const char* name, SaveOptions::Data data) {
    save(model, folder_ / name, {.data = data});
  };
  using Names = std::vector<std::string>;
  write("out.onnx", SaveOptions::Data::External);
  write("out.onnx", SaveOptions::Data::Inside);
  EXPECT_EQ(folder_.names(), Names{"out.onnx"});
  // Another model may live by it, or it may be a file that the old model never named.
  write("out.onnx", SaveOptions::Data::External);
  fs::copy_file(folder_ / "out.onnx", folder_ / "copy.onnx");
  write("out.onnx", SaveOptions::Data::Inside);
  EXPECT_EQ(folder_.names(), (Names{"copy.onnx", "out.onnx", "out.onnx.data"}));
  EXPECT_EQ(load(folder_ / "copy.onnx").graph.values().size(), model.graph.values().size());
  fs::remove(folder_ / "copy.onnx");
  write("out.onnx", SaveOptions::Data::Inside);
  EXPECT_EQ(folder_.names(), (Names{"out.onnx", "out.onnx.data"}));
}

TEST_F(ExternalData, CanBePutOutside) {
  Model model = big_model(1000, ConstantForm::Raw);
  model.graph.add_constant("shape", Tensor::of<std::int64_t>({1}, {7}));
  save(model, folder_ / "out.onnx", {.data = SaveOptions::Data::External});
  EXPECT_EQ(fs::file_size(folder_ / "out.onnx.data"), 4000U);
  const Model again = load(folder_ / "out.onnx");
  EXPECT_EQ(again.graph.constant(again.graph.find("w"))->data<float>()[999], 999.0F);
  // Readers need small tensors while they build the graph, so those stay inside.
  EXPECT_EQ(again.graph[again.graph.find("shape")].form, ConstantForm::Raw);
}

TEST_F(ExternalData, BlocksAreAlignedAndSharedBytesAreStoredOnce) {
  Model model = big_model(300, ConstantForm::External);
  const Tensor first = *model.graph.constant(model.graph.find("w"));
  for (const char* name : {"same", "other"}) {
    Tensor tensor = first;
    if (std::string(name) == "other") tensor.mutable_data<float>()[0] = -1;
    model.graph[model.graph.add_constant(name, tensor)].form = ConstantForm::External;
  }
  save(model, folder_ / "out.onnx");
  EXPECT_EQ(fs::file_size(folder_ / "out.onnx.data"), 1216U + 1200U);
  const Model again = load(folder_ / "out.onnx");
  EXPECT_EQ(*again.graph.constant(again.graph.find("same")), first);
  EXPECT_EQ(again.graph.constant(again.graph.find("other"))->data<float>()[0], -1.0F);
}

TEST_F(ExternalData, ModelsOverTheLimitGoOutsideByThemselves) {
  const Model model = big_model(100'000, ConstantForm::Raw);
  onnx::stage_file(model, folder_ / "small.onnx", {}, 500'000)->commit();
  onnx::stage_file(model, folder_ / "large.onnx", {}, 300'000)->commit();
  EXPECT_FALSE(fs::exists(folder_ / "small.onnx.data"));
  EXPECT_EQ(fs::file_size(folder_ / "large.onnx.data"), 400'000U);
  const Model again = load(folder_ / "large.onnx");
  EXPECT_EQ(*again.graph.constant(again.graph.find("w")),
            *model.graph.constant(model.graph.find("w")));
}

TEST_F(ExternalData, SavedOverItself) {
  save(big_model(5000, ConstantForm::External), folder_ / "m.onnx");
  Model model = load(folder_ / "m.onnx");
  model.doc = "changed";
  save(model, folder_ / "m.onnx");
  const Model again = load(folder_ / "m.onnx");
  EXPECT_EQ(again.doc, "changed");
  EXPECT_EQ(again.graph.constant(again.graph.find("w"))->data<float>()[4999], 4999.0F);
  EXPECT_EQ(folder_.names(), (std::vector<std::string>{"m.onnx", "m.onnx.data"}));
}

TEST_F(ExternalData, FailureLeavesTheOldPair) {
  save(big_model(5000, ConstantForm::External), folder_ / "m.onnx");
  const std::string model_before = read_bytes(folder_ / "m.onnx");
  const std::string data_before = read_bytes(folder_ / "m.onnx.data");
  Model broken = big_model(6000, ConstantForm::External);
  broken.graph.nodes[0].inputs[0] = broken.graph.add_fresh("nobody_makes_this");
  EXPECT_THROW(save(broken, folder_ / "m.onnx"), Error);
  EXPECT_EQ(read_bytes(folder_ / "m.onnx"), model_before);
  EXPECT_EQ(read_bytes(folder_ / "m.onnx.data"), data_before);
  EXPECT_EQ(folder_.names(), (std::vector<std::string>{"m.onnx", "m.onnx.data"}));
}

}  // namespace
}  // namespace quench::testing
