// SPDX-License-Identifier: Apache-2.0
// Packed files: what goes in comes out, damage is noticed, and small numbers make small files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "base/memory.h"
#include "formats/packed/file.h"
#include "quench/pack.h"
#include "unit/formats/onnx_builder.h"

namespace quench::testing {
namespace {

constexpr unsigned kSeed = 20240517;

/// A model whose constants are the given tensors.
Model model_of(const std::vector<Tensor>& tensors) {
  Model model;
  model.opsets[""] = 21;
  Graph& graph = model.graph;
  Value x;
  x.name = "x";
  x.type = ValueType::tensor(DType::Float32, std::vector<Dim>{{1, ""}});
  graph.inputs = {graph.add_value(x)};
  std::vector<ValueId> inputs = graph.inputs;
  for (const Tensor& each : tensors) inputs.push_back(graph.add_constant("w", each));
  graph.outputs = {graph.add_node("Custom", inputs, {"y"}).outputs[0]};
  return model;
}

std::string packed_bytes(const Model& model, const SaveOptions& options = {}) {
  const Folder folder;
  save(model, folder / "m.qnch", options);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"m.qnch"});
  return read_bytes(folder / "m.qnch");
}

Model unpacked(const std::string& bytes) {
  const Folder folder;
  write_bytes(folder / "m.qnch", bytes);
  return load(folder / "m.qnch");
}

/// The size of the packed file, after checking that nothing was lost.
std::size_t round_trip(const std::vector<Tensor>& tensors, const SaveOptions& options = {}) {
  const Model model = model_of(tensors);
  const std::string bytes = packed_bytes(model, options);
  const Model again = unpacked(bytes);
  EXPECT_EQ(dump(again), dump(model));
  std::size_t i = 0;
  for (const Value& value : again.graph.values()) {
    if (!value.constant) continue;
    EXPECT_TRUE(*value.constant == tensors[i]) << "tensor " << i;
    ++i;
  }
  EXPECT_EQ(i, tensors.size());
  return bytes.size();
}

/// Integers of a bell-shaped distribution that fill `bits` bits.
Tensor bell(DType dtype, Shape shape, int bits, double spread) {
  std::mt19937 source(kSeed);
  std::normal_distribution<double> normal(0, spread);
  const int limit = (1 << (bits - 1)) - 1;
  Tensor tensor = Tensor::zeros(dtype, std::move(shape));
  const auto bytes = tensor.mutable_bytes();
  const auto number = [&] {
    return std::clamp(static_cast<int>(std::lround(normal(source))), -limit - 1, limit);
  };
  if (dtype == DType::Int16) {
    for (std::size_t i = 0; i < bytes.size(); i += 2) {
      const auto value = static_cast<std::int16_t>(number());
      std::memcpy(&bytes[i], &value, 2);
    }
  } else if (dtype == DType::Int4) {
    for (std::byte& each : bytes) {
      each = static_cast<std::byte>((number() & 15) | ((number() & 15) << 4));
    }
  } else {
    for (std::byte& each : bytes) each = static_cast<std::byte>(number());
  }
  return tensor;
}

Tensor random_floats(Shape shape) {
  std::mt19937 source(kSeed);
  std::normal_distribution<float> normal(0, 0.1F);
  Tensor tensor = Tensor::zeros(DType::Float32, std::move(shape));
  for (float& each : tensor.mutable_data<float>()) each = normal(source);
  return tensor;
}

TEST(Packed, EveryTypeAndSizeComesBack) {
  std::mt19937 source(kSeed);
  for (const DTypeInfo& row : all_dtypes()) {
    if (row.bits == 0) continue;
    std::vector<Tensor> tensors;
    for (const Shape& shape : std::vector<Shape>{{}, {0}, {3, 0}, {7}, {5, 31}, {33, 127}}) {
      Tensor random = Tensor::zeros(row.dtype, shape);
      for (std::byte& each : random.mutable_bytes()) {
        each = static_cast<std::byte>(row.dtype == DType::Bool ? source() % 2 : source());
      }
      tensors.push_back(Tensor::zeros(row.dtype, shape));
      tensors.push_back(std::move(random));
    }
    SCOPED_TRACE(row.name);
    round_trip(tensors);
    round_trip(tensors, {.encode = false});
  }
}

TEST(Packed, StringsComeBack) {
  round_trip({Tensor::strings({2}, {"one", std::string(3000, 'x')})});
}

TEST(Packed, EveryBitWidthTakesItsBits) {
  for (int bits = 1; bits <= 16; ++bits) {
    const DType dtype = bits > 8 ? DType::Int16 : DType::Int8;
    const double spread = bits == 1 ? 0.5 : std::pow(2.0, bits - 1);  // nearly even
    const std::size_t count = 64 * 1024;
    const std::vector<Tensor> tensors = {bell(dtype, {64, 1024}, bits, spread)};
    const auto limit = count * static_cast<std::size_t>(bits) / 8 + 400;
    EXPECT_LE(round_trip(tensors), limit) << bits << " bits";
    EXPECT_LE(round_trip(tensors, {.encode = false}), limit) << bits << " bits";
  }
}

TEST(Packed, EntropyCodingComesNearTheEntropy) {
  const double spread = 6;
  const std::size_t count = 512 * 1024;
  const double entropy = std::log2(spread * std::sqrt(2 * 3.14159265 * 2.71828183));
  const auto size = static_cast<double>(round_trip({bell(DType::Int8, {512, 1024}, 8, spread)}));
  EXPECT_LE(size * 8 / static_cast<double>(count), entropy * 1.005);
}

TEST(Packed, ChannelsOfUnlikeSpreadHaveTablesOfTheirOwn) {
  Tensor tensor = bell(DType::Int8, {64, 4096}, 8, 30);
  const auto data = tensor.mutable_data<std::int8_t>();
  std::fill(data.begin(), data.begin() + 16 * 4096, std::int8_t{-7});
  for (std::size_t i = 16 * 4096; i < 40 * 4096; ++i)
    data[i] = static_cast<std::int8_t>(data[i] / 16);
  // 24 channels of about 3.1 bits and 24 of 7; one table for all would take about 0.8 of the bits.
  EXPECT_LE(round_trip({tensor}), 24 * 4096 * (3.2 + 7.0) / 8 + 600);
}

TEST(Packed, FewAndRareValuesTakeLittle) {
  std::mt19937 source(kSeed);
  Tensor rare = Tensor::zeros(DType::Int8, {100000});
  for (int i = 0; i < 500; ++i) rare.mutable_data<std::int8_t>()[source() % 100000] = 77;
  EXPECT_LE(round_trip({rare}), 1100U);
  Tensor few = Tensor::zeros(DType::Int8, {80000});
  for (std::int8_t& each : few.mutable_data<std::int8_t>()) each = source() % 2 == 0 ? -90 : 101;
  EXPECT_LE(round_trip({few}), 10400U);
}

TEST(Packed, RepeatedTensorsAreStoredOnce) {
  const Tensor once = random_floats({64, 64});
  EXPECT_LE(round_trip({once, once, once}), round_trip({once}) + 60);
}

TEST(Packed, HugeConstantTensorStaysReadable) {
  round_trip({Tensor::zeros(DType::Float32, {40, 1024, 1024})});
}

TEST(Packed, FloatsAreSmallerThanTheyWere) {
  const std::size_t raw = 256 * 1024 * 4;
  EXPECT_LE(round_trip({random_floats({256, 1024})}), raw * 88 / 100);
  EXPECT_LE(round_trip({random_floats({256, 1024})}, {.encode = false}), raw + 600);
}

TEST(Packed, AttributesAndTypedFieldsComeBack) {
  onnx::ModelProto proto = small_model();
  onnx::TensorProto& typed = *proto.mutable_graph()->add_initializer();
  typed.set_name("typed");
  typed.set_data_type(static_cast<int>(DType::Int8));
  typed.add_dims(2000);
  for (int i = 0; i < 2000; ++i) typed.add_int32_data(i % 5 - 2);
  onnx::AttributeProto& attribute = *proto.mutable_graph()->mutable_node(0)->add_attribute();
  attribute.set_name("table");
  attribute.set_type(4);
  attribute.mutable_t()->set_data_type(1);
  attribute.mutable_t()->add_dims(1);
  attribute.mutable_t()->add_float_data(2.5F);
  const Model model = load_proto(proto);
  const Model again = unpacked(packed_bytes(model));
  EXPECT_EQ(dump(again), dump(model));
  const Folder folder;
  save(model, folder / "a.onnx");
  save(again, folder / "b.onnx");
  EXPECT_EQ(read_bytes(folder / "a.onnx"), read_bytes(folder / "b.onnx"));
}

/// A small file with every storage and every coding in it.
std::string small_packed_file() {
  std::vector<std::int32_t> repeats(400);
  for (std::size_t i = 0; i < repeats.size(); ++i) repeats[i] = static_cast<int>(i % 13) * 77777;
  Tensor few = Tensor::zeros(DType::Int8, {1, 1100});
  std::mt19937 source(kSeed);
  for (std::int8_t& each : few.mutable_data<std::int8_t>()) each = source() % 2 == 0 ? -90 : 101;
  Tensor rare = Tensor::zeros(DType::Int8, {1030});
  rare.mutable_data<std::int8_t>()[500] = 3;
  return packed_bytes(model_of({Tensor::of<float>({2}, {1, 2}), bell(DType::Int8, {4, 300}, 8, 3),
                                bell(DType::Int4, {2200}, 4, 5), few, rare, few,
                                Tensor::of<std::int32_t>({400}, repeats)}));
}

TEST(Packed, EveryFlippedByteIsNoticed) {
  const std::string bytes = small_packed_file();
  for (std::size_t at = packed::kMagic.size(); at < bytes.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      try {
        auto copy = std::make_shared<std::string>(damaged);
        packed::read_bytes({std::as_bytes(std::span(*copy)), copy});
        ADD_FAILURE() << "byte " << at << " flipped by " << flip << " was not noticed";
      } catch (const Error& error) {
        EXPECT_NE(error.kind(), ErrorKind::Internal) << at;
      }
    }
  }
  for (std::size_t at = 0; at < packed::kMagic.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    EXPECT_THROW(unpacked(damaged), Error);
  }
}

TEST(Packed, EveryTruncationIsNoticed) {
  const std::string bytes = small_packed_file();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    auto copy = std::make_shared<std::string>(bytes.substr(0, size));
    EXPECT_THROW(packed::read_bytes({std::as_bytes(std::span(*copy)), copy}), Error) << size;
  }
}

TEST(Packed, DecodersSurviveAnyBytes) {
  const std::string bytes = small_packed_file();
  const packed::Head head = packed::read_head(std::as_bytes(std::span(bytes)));
  std::mt19937 source(kSeed);
  for (const packed::PackedTensor& tensor : head.tensors) {
    for (const packed::PackedStream& stream : tensor.streams) {
      std::vector<packed::Symbol> out(static_cast<std::size_t>(tensor.num_symbols()));
      for (int trial = 0; trial < 300; ++trial) {
        const packed::PackedStream::Chunk& chunk = stream.chunks[0];
        std::string damaged = bytes.substr(static_cast<std::size_t>(chunk.offset),
                                           static_cast<std::size_t>(chunk.size));
        if (trial % 2 == 0) damaged.resize(source() % (damaged.size() + 1));
        if (!damaged.empty()) damaged[source() % damaged.size()] = static_cast<char>(source());
        try {
          stream.coder->decode(std::as_bytes(std::span(damaged)), 0, out);
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::BadModel);
        }
      }
    }
  }
}

TEST(Packed, SmallFileCannotFillTheMemory) {
  EXPECT_LT(packed::most_bytes(1000), std::uint64_t{32} << 20);
  EXPECT_GT(packed::most_bytes(UINT64_MAX), 0U);
}

TEST(Packed, OtherVersionsAreRefusedByName) {
  std::string bytes = small_packed_file();
  bytes[packed::kMagic.size()] = 2;
  try {
    unpacked(bytes);
    FAIL() << "read a version that does not exist yet";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
    EXPECT_NE(std::string(error.what()).find("version 2"), std::string::npos);
  }
}

TEST(Packed, AllCodingsAreUsedAndDescribed) {
  const Folder folder;
  write_bytes(folder / "m.qnch", small_packed_file());
  const PackSummary summary = describe_packed(folder / "m.qnch");
  std::int64_t stored = 0;
  std::vector<std::string> names;
  for (const PackedCoding& row : summary.codings) {
    stored += row.stored;
    names.push_back(row.name);
  }
  EXPECT_EQ(stored, summary.bytes);
  EXPECT_GE(names.size(), 4U) << ::testing::PrintToString(names);
  EXPECT_THROW(describe_packed(folder / "other.qnch"), Error);
}

TEST(Packed, FailureLeavesTheOldFile) {
  const Folder folder;
  write_bytes(folder / "m.qnch", "old");
  Model broken = load_proto(small_model());
  broken.graph.nodes[0].inputs[0] = broken.graph.add_fresh("nobody_makes_this");
  EXPECT_THROW(save(broken, folder / "m.qnch"), Error);
  EXPECT_EQ(read_bytes(folder / "m.qnch"), "old");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"m.qnch"});
}

/// Tensors of 16 MB in a mapped file, which takes no room: all but a number in each is zero.
std::vector<Tensor> large_tensors(const std::string& path, std::int64_t count) {
  constexpr std::int64_t kBytes = 16 << 20;
  std::ofstream file(path, std::ios::binary);
  for (std::int64_t i = 0; i < count; ++i) {
    file.seekp(i * kBytes);
    file.put(static_cast<char>(i + 1));
  }
  file.close();
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(count * kBytes));
  const auto mapped = MappedFile::open(path);
  std::vector<Tensor> tensors;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bytes = mapped->bytes().subspan(static_cast<std::size_t>(i * kBytes), kBytes);
    tensors.push_back(Tensor::view(DType::UInt8, {kBytes}, bytes, mapped));
  }
  return tensors;
}

TEST(Packed, TakesTheMemoryOfSomeTensorsNotOfAll) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "freed memory is kept to find its users";
#endif
  const Folder folder;
  const Model model = model_of(large_tensors(folder / "weights", 32));
  const PeakMemory memory;
  save(model, folder / "m.qnch", {.encode = false});
  EXPECT_LT(memory.peak_mb(), 300) << "for 512 MB";
}

}  // namespace
}  // namespace quench::testing
