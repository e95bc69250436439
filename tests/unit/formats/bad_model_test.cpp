// SPDX-License-Identifier: Apache-2.0
// Damaged and hostile model files: one clear sentence each, never a crash.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "unit/formats/onnx_builder.h"

namespace quench::testing {
namespace {

using onnx::GraphProto;
using onnx::ModelProto;

/// What is done to the small model, and words that the message must have.
struct BadModel {
  const char* name;
  std::function<void(ModelProto&)> spoil;
  std::vector<const char*> words;
};

void PrintTo(const BadModel& bad, std::ostream* out) { *out << bad.name; }

std::vector<BadModel> bad_names() {
  return {
      {"NoGraph", [](ModelProto& m) { m.clear_graph(); }, {"no graph"}},
      {"UndefinedValue",
       [](ModelProto& m) { m.mutable_graph()->mutable_node(0)->set_input(0, "z"); },
       {"'relu'", "'z'"}},
      {"UndefinedOutput",
       [](ModelProto& m) { m.mutable_graph()->mutable_output(0)->set_name("z"); },
       {"output", "'z'"}},
      {"NoOperatorType",
       [](ModelProto& m) { m.mutable_graph()->mutable_node(0)->clear_op_type(); },
       {"'relu'", "operator type"}},
      {"InputTwice",
       [](ModelProto& m) { *m.mutable_graph()->add_input() = float_value("x", {2}); },
       {"two graph inputs", "'x'"}},
      {"InputWithoutName",
       [](ModelProto& m) { m.mutable_graph()->mutable_input(0)->clear_name(); },
       {"input has no name"}},
      {"InitializerTwice",
       [](ModelProto& m) {
         add_weight(*m.mutable_graph(), "w", {1});
         add_weight(*m.mutable_graph(), "w", {1});
       },
       {"two initializers", "'w'"}},
      {"InitializerWithoutName",
       [](ModelProto& m) { add_weight(*m.mutable_graph(), "", {1}); },
       {"initializer has no name"}},
  };
}

std::vector<BadModel> bad_order() {
  return {
      {"NodeMakesInput",
       [](ModelProto& m) { m.mutable_graph()->mutable_node(0)->set_output(0, "x"); },
       {"'relu'", "'x'", "exists already"}},
      {"NodesMakeTheSame",
       [](ModelProto& m) { add_node(*m.mutable_graph(), "Neg", {"x"}, {"y"}).set_name("neg"); },
       {"'neg'", "'y'", "exists already"}},
      {"UnsortedAndACycle",
       [](ModelProto& m) {
         m.mutable_graph()->mutable_node(0)->set_input(0, "late");
         add_node(*m.mutable_graph(), "Neg", {"x"}, {"late"}).set_name("neg");
         add_node(*m.mutable_graph(), "Neg", {"self"}, {"self"}).set_name("loop");
       },
       {"'relu'", "'late'", "'neg'", "cycle"}},
      {"Cycle",
       [](ModelProto& m) {
         m.mutable_graph()->mutable_node(0)->set_input(0, "back");
         add_node(*m.mutable_graph(), "Neg", {"y"}, {"back"}).set_name("neg");
       },
       {"'relu'", "cycle", "'neg'"}},
      {"CycleOfOne",
       [](ModelProto& m) { m.mutable_graph()->mutable_node(0)->set_input(0, "y"); },
       {"'relu'", "cycle"}},
  };
}

std::vector<BadModel> bad_contents() {
  return {
      {"NegativeDimension",
       [](ModelProto& m) { add_weight(*m.mutable_graph(), "w", {1}).set_dims(0, -1); },
       {"'w'", "negative"}},
      {"OverflowingShape",
       [](ModelProto& m) {
         auto& tensor = add_weight(*m.mutable_graph(), "w", {1});
         for (int i = 0; i < 9; ++i) tensor.add_dims(1L << 40);
       },
       {"'w'", "overflow"}},
      {"TensorWithoutType",
       [](ModelProto& m) { add_weight(*m.mutable_graph(), "w", {1}).clear_data_type(); },
       {"'w'", "element type"}},
      {"DataInTheWrongField",
       [](ModelProto& m) {
         auto& tensor = add_weight(*m.mutable_graph(), "w", {1});
         tensor.clear_raw_data();
         tensor.set_data_type(6);
         tensor.add_float_data(1);
       },
       {"'w'", "int32"}},
      {"AttributeOfTwoKinds",
       [](ModelProto& m) {
         auto& attribute = *m.mutable_graph()->mutable_node(0)->add_attribute();
         attribute.set_name("a");
         attribute.set_type(2);
         attribute.mutable_g()->set_name("hidden");
       },
       {"'relu'", "'a'"}},
      {"BranchReadsItsOwnResult",
       [](ModelProto& m) {
         auto& attribute = *m.mutable_graph()->mutable_node(0)->add_attribute();
         attribute.set_name("body");
         attribute.set_type(5);
         add_node(*attribute.mutable_g(), "Neg", {"late"}, {"n"}).set_name("inner");
         add_node(*m.mutable_graph(), "Abs", {"y"}, {"late"}).set_name("abs");
       },
       {"'relu'", "'inner'", "'late'", "'abs'"}},
      {"FunctionOutputIsNotMade",
       [](ModelProto& m) {
         m.add_functions()->set_name("F");
         m.mutable_functions(0)->add_output("o");
       },
       {"'F'", "'o'"}},
  };
}

class BadModels : public ::testing::TestWithParam<BadModel> {};

TEST_P(BadModels, IsRefusedWithAClearSentence) {
  ModelProto proto = small_model();
  GetParam().spoil(proto);
  const std::string message = load_error(proto.SerializeAsString());
  EXPECT_NE(message.find("model.onnx: "), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  for (const char* word : GetParam().words) {
    EXPECT_NE(message.find(word), std::string::npos) << message << " lacks " << word;
  }
}

std::string name_of_case(const ::testing::TestParamInfo<BadModel>& each) { return each.param.name; }

INSTANTIATE_TEST_SUITE_P(Names, BadModels, ::testing::ValuesIn(bad_names()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Order, BadModels, ::testing::ValuesIn(bad_order()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Contents, BadModels, ::testing::ValuesIn(bad_contents()), name_of_case);

TEST(BadFile, Empty) { EXPECT_NE(load_error("").find("empty"), std::string::npos); }

TEST(BadFile, Missing) {
  const Folder folder;
  try {
    (void)load(folder / "nothing.onnx");
    FAIL() << "loaded a file that is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Io);
    EXPECT_NE(std::string(error.what()).find("nothing.onnx"), std::string::npos);
  }
}

/// Serialized models to spoil byte by byte: weights, typed data, a subgraph, a function.
std::string rich_model() {
  ModelProto proto = small_model();
  GraphProto& graph = *proto.mutable_graph();
  add_weight(graph, "w", {1, 2, 3});
  auto& node = add_node(graph, "Loop", {"x"}, {"z"});
  auto& body = *node.add_attribute();
  body.set_name("body");
  body.set_type(5);
  add_node(*body.mutable_g(), "Add", {"x", "w"}, {"s"});
  *body.mutable_g()->add_output() = float_value("s", {3});
  auto& constant = *node.add_attribute();
  constant.set_name("value");
  constant.set_type(4);
  constant.mutable_t()->set_data_type(7);
  constant.mutable_t()->add_dims(2);
  constant.mutable_t()->add_int64_data(300);
  constant.mutable_t()->add_int64_data(-1);
  proto.add_functions()->set_name("F");
  return proto.SerializeAsString();
}

/// Loading may succeed or fail, but only with an Error of a kind that fits a file.
void expect_no_surprise(const std::string& bytes) {
  try {
    (void)dump(load_bytes(bytes));
  } catch (const Error& error) {
    EXPECT_TRUE(error.kind() == ErrorKind::BadModel || error.kind() == ErrorKind::Unsupported ||
                error.kind() == ErrorKind::Io)
        << error.what();
  }
}

TEST(BadFile, EveryTruncation) {
  const std::string bytes = rich_model();
  for (std::size_t size = 0; size < bytes.size(); ++size) expect_no_surprise(bytes.substr(0, size));
}

TEST(BadFile, EveryByteSpoiled) {
  const std::string bytes = rich_model();
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const char value : {'\x00', '\x7F', '\xFF'}) {
      std::string spoiled = bytes;
      spoiled[at] = value;
      expect_no_surprise(spoiled);
    }
  }
}

TEST(BadFile, RandomBytes) {
  std::mt19937 random(7);  // NOLINT: the same bytes in every run
  for (int round = 0; round < 200; ++round) {
    std::string bytes = "\x08\x07";
    for (int i = 0; i < 100; ++i) bytes.push_back(static_cast<char>(random()));
    expect_no_surprise(bytes);
  }
}

TEST(BadFile, FieldThatClaimsMoreBytesThanThereAre) {
  const std::string message = load_error("\x08\x08\x3A\xFF\xFF\xFF\xFF\x0F");
  EXPECT_NE(message.find("truncated"), std::string::npos) << message;
}

TEST(BadFile, DeepNesting) {
  // A graph in an attribute in a node in a graph, and so on.
  std::string inner;
  const auto wrap = [&](char tag) {
    std::string outer(1, tag);
    std::size_t size = inner.size();
    for (; size >= 0x80; size >>= 7) outer.push_back(static_cast<char>((size & 0x7F) | 0x80));
    outer.push_back(static_cast<char>(size));
    inner = outer + inner;
  };
  for (int depth = 0; depth < 2000; ++depth) {
    wrap('\x32');  // AttributeProto.g
    wrap('\x2A');  // NodeProto.attribute
    wrap('\x0A');  // GraphProto.node
  }
  wrap('\x3A');  // ModelProto.graph
  const std::string message = load_error("\x08\x08" + inner);
  EXPECT_NE(message.find("nested"), std::string::npos) << message;
}

TEST(BadFile, OwnFieldsInAFileAreDropped) {
  // A file must not be able to point a tensor at bytes of its choice.
  ModelProto proto = small_model();
  auto& tensor = add_weight(*proto.mutable_graph(), "w", {1});
  tensor.clear_raw_data();
  tensor.mutable_quench_payload()->set_field(9);
  tensor.mutable_quench_payload()->set_position(1'000'000);
  tensor.mutable_quench_payload()->set_size(4);
  EXPECT_NE(load_error(proto.SerializeAsString()).find("'w'"), std::string::npos);
}

}  // namespace
}  // namespace quench::testing
