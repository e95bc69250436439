// SPDX-License-Identifier: Apache-2.0
// Tensor sources: .bin folders, .npy and .npz, IDX, CIFAR, several inputs, labels.
#include <zlib.h>

#include <numeric>

#include "unit/data/data_testing.h"

namespace quench {
namespace {

using testing::bytes_of;
using testing::error_of;
using testing::expect_contains;
using testing::floats;
using testing::input;
using testing::TempFolder;

std::unique_ptr<SampleSource> open(const std::string& path, const std::vector<Value>& inputs,
                                   const std::string& labels = "") {
  DataOptions options;
  options.path = path;
  options.labels = labels;
  return open_data(options, inputs);
}

std::string idx(const std::vector<std::uint32_t>& dims, const std::string& data) {
  std::string text{'\0', '\0', '\x08', static_cast<char>(dims.size())};
  for (const std::uint32_t dim : dims) {
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(dim >> shift);
  }
  return text + data;
}

void write_gzip(const std::string& path, const std::string& text) {
  const gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())),
            static_cast<int>(text.size()));
  gzclose(file);
}

TEST(BinSource, FilesAreSortedAndMustHaveTheInputsSize) {
  const TempFolder folder;
  folder.write("d/b.bin", bytes_of<float>({3, 4}));
  folder.write("d/a.bin", bytes_of<float>({1, 2}));
  folder.write("d/notes.txt", "ignored");
  const std::vector<Value> inputs = {input("x", DType::Float32, {-1, 2})};
  const auto source = open(folder.path("d"), inputs);
  ASSERT_EQ(source->size(), 2);
  EXPECT_FALSE(source->has_labels());
  const Sample first = source->read(0);
  EXPECT_EQ(first.name, "a.bin");
  EXPECT_EQ(first.label, -1);
  EXPECT_EQ(first.inputs.at("x"), Tensor::of<float>({1, 2}, {1, 2}));
  EXPECT_EQ(source->read(1).inputs.at("x"), Tensor::of<float>({1, 2}, {3, 4}));
  folder.write("d/c.bin", bytes_of<float>({1, 2, 3}));
  const auto wrong = [&] { open(folder.path("d"), inputs); };
  expect_contains(error_of(ErrorKind::BadData, wrong), {"c.bin", "12 bytes", "needs 8", "'x'"});
}

TEST(BinSource, FilesOfAFixedBatchGiveItsRows) {
  const TempFolder folder;
  folder.write("d/a.bin", bytes_of<std::int64_t>({1, 2, 3, 4}));
  folder.write("d/b.bin", bytes_of<std::int64_t>({5, 6, 7, 8}));
  const auto source = open(folder.path("d"), {input("x", DType::Int64, {2, 2})});
  ASSERT_EQ(source->size(), 4);
  EXPECT_EQ(source->read(3).inputs.at("x"), Tensor::of<std::int64_t>({1, 2}, {7, 8}));
  EXPECT_EQ(source->read(3).name, "b.bin#1");
}

TEST(BinSource, NhwcFilesAreTransposedToTheInputsLayout) {
  const TempFolder folder;
  folder.write("d/a.bin", bytes_of<std::int16_t>({1, 10, 2, 20, 3, 30}));
  DataOptions options;
  options.path = folder.path("d");
  const std::vector<Value> inputs = {input("x", DType::Int16, {-1, 2, 1, 3})};
  const auto first = [&] { return open_data(options, inputs)->read(0).inputs.at("x"); };
  EXPECT_EQ(first(), Tensor::of<std::int16_t>({1, 2, 1, 3}, {1, 10, 2, 20, 3, 30}));
  options.bin_layout = BinLayout::Nhwc;
  EXPECT_EQ(first(), Tensor::of<std::int16_t>({1, 2, 1, 3}, {1, 2, 3, 10, 20, 30}));
  const std::vector<Value> flat = {input("x", DType::Int16, {-1, 2, 3})};
  EXPECT_EQ(open_data(options, flat)->read(0).inputs.at("x"),
            Tensor::of<std::int16_t>({1, 2, 3}, {1, 10, 2, 20, 3, 30}));
}

TEST(BinSource, OpenDimensionsAreRefused) {
  const TempFolder folder;
  folder.write("d/a.bin", "1234");
  const auto open_it = [&] { open(folder.path("d"), {input("x", DType::Float32, {1, -1})}); };
  expect_contains(error_of(ErrorKind::Unsupported, open_it), {"'x'", ".npy"});
}

TEST(NpySource, RowsAreSamplesInTheInputsType) {
  const TempFolder folder;
  write_npy(Tensor::of<double>({3, 2}, {1, 2, 3, 4, 5, 6}), folder.path("x.npy"));
  const auto source = open(folder.path("x.npy"), {input("x", DType::Float32, {-1, 2})});
  ASSERT_EQ(source->size(), 3);
  EXPECT_EQ(source->read(2).inputs.at("x"), Tensor::of<float>({1, 2}, {5, 6}));
  expect_contains(source->read(2).name, {"x.npy#2"});
  const auto wrong = [&] { open(folder.path("x.npy"), {input("x", DType::Float32, {-1, 3})}); };
  expect_contains(error_of(ErrorKind::BadData, wrong), {"x.npy", "3x2", "'x'"});
  EXPECT_THROW(source->read(3), Error);
}

TEST(NpySource, OneSampleAndMissingOnesFit) {
  const TempFolder folder;
  write_npy(Tensor::of<float>({2, 2}, {1, 2, 3, 4}), folder.path("x.npy"));
  const auto single = open(folder.path("x.npy"), {input("x", DType::Float32, {-1, 2, 2})});
  ASSERT_EQ(single->size(), 1);
  EXPECT_EQ(single->read(0).inputs.at("x").shape(), (Shape{1, 2, 2}));
  const auto ones = open(folder.path("x.npy"), {input("x", DType::Float32, {-1, 1, 2, 1})});
  ASSERT_EQ(ones->size(), 2);
  EXPECT_EQ(ones->read(1).inputs.at("x"), Tensor::of<float>({1, 1, 2, 1}, {3, 4}));
}

TEST(NpySource, AFolderHoldsOneSampleAFile) {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path("d"));
  write_npy(Tensor::of<float>({2}, {1, 2}), folder.path("d/a.npy"));
  write_npy(Tensor::of<float>({1, 2}, {3, 4}), folder.path("d/b.npy"));
  write_npy(Tensor::of<float>({2, 2}, {1, 2, 3, 4}), folder.path("d/c.npy"));
  const auto source = open(folder.path("d"), {input("x", DType::Float32, {-1, 2})});
  EXPECT_EQ(source->read(0).inputs.at("x"), Tensor::of<float>({1, 2}, {1, 2}));
  EXPECT_EQ(source->read(1).inputs.at("x"), Tensor::of<float>({1, 2}, {3, 4}));
  expect_contains(error_of(ErrorKind::BadData, [&] { source->read(2); }), {"c.npy", "2 samples"});
}

TEST(Inputs, PairsFeedSeveralInputs) {
  const TempFolder folder;
  write_npy(Tensor::of<std::int64_t>({2, 1}, {1, 2}), folder.path("ids.npy"));
  write_npy(Tensor::of<std::int64_t>({2, 1}, {3, 4}), folder.path("a:b,c.npy"));
  const std::vector<Value> inputs = {input("ids", DType::Int64, {-1, 1}),
                                     input("s:mask", DType::Int64, {-1, 1})};
  const auto source =
      open("s:mask:'" + folder.path("a:b,c.npy") + "',ids:" + folder.path("ids.npy"), inputs);
  EXPECT_EQ(source->read(1).inputs.at("ids"), Tensor::of<std::int64_t>({1, 1}, {2}));
  EXPECT_EQ(source->read(1).inputs.at("s:mask"), Tensor::of<std::int64_t>({1, 1}, {4}));
}

TEST(Inputs, WrongPairsAreNamed) {
  const TempFolder folder;
  write_npy(Tensor::of<float>({2, 1}, {1, 2}), folder.path("two.npy"));
  write_npy(Tensor::of<float>({3, 1}, {1, 2, 3}), folder.path("three.npy"));
  const std::vector<Value> inputs = {input("ids", DType::Float32, {-1, 1}),
                                     input("mask", DType::Float32, {-1, 1})};
  const auto what = [&](const std::string& path, ErrorKind kind) {
    return error_of(kind, [&] { open(path, inputs); });
  };
  const std::string two = folder.path("two.npy");
  const std::string three = folder.path("three.npy");
  expect_contains(what(two, ErrorKind::Usage), {"2 inputs", "ids, mask"});
  expect_contains(what("ids:" + two, ErrorKind::Usage), {"'mask'"});
  expect_contains(what("ids:" + two + ",mast:" + two, ErrorKind::Usage), {"'mast'", "'mask'?"});
  expect_contains(what("ids:" + two + ",ids:" + two, ErrorKind::Usage), {"'ids'", "already"});
  expect_contains(what("ids:'" + two, ErrorKind::Usage), {"quote"});
  expect_contains(what("ids:" + two + ",mask:" + three, ErrorKind::BadData),
                  {"two.npy", "2", "three.npy", "3"});
  expect_contains(what("ids:" + two + ",mask:" + folder.path("no.npy"), ErrorKind::Io), {"no.npy"});
}

TEST(Inputs, WithoutACommonBatchSamplesAreWhole) {
  const TempFolder folder;
  write_npy(Tensor::of<float>({2, 3, 1}, {1, 2, 3, 4, 5, 6}), folder.path("x.npy"));
  write_npy(Tensor::of<float>({2, 2}, {1, 2, 3, 4}), folder.path("h.npy"));
  const auto source = open("x:" + folder.path("x.npy") + ",h:" + folder.path("h.npy"),
                           {input("x", DType::Float32, {3, 1}), input("h", DType::Float32, {2})});
  ASSERT_EQ(source->size(), 2);
  EXPECT_FALSE(source->batchable());
  EXPECT_EQ(source->read(1).inputs.at("x"), Tensor::of<float>({3, 1}, {4, 5, 6}));
  EXPECT_EQ(source->read(1).inputs.at("h"), Tensor::of<float>({2}, {3, 4}));
  error_of(ErrorKind::Usage, [&] { BatchReader(*source, 2); });
}

TEST(IdxSource, PlainAndGzippedWithLabelsBesideThem) {
  const TempFolder folder;
  const std::string pixels{'\x00', '\xFF', '\x02', '\x03', '\x04', '\x05', '\x06', '\x07'};
  const auto plain = folder.write("t-images-idx3-ubyte", idx({2, 2, 2}, pixels));
  folder.write("t-labels-idx1-ubyte", idx({2}, "\x09\x05"));
  const std::vector<Value> inputs = {input("x", DType::Float32, {-1, 1, 2, 2})};
  const auto source = open(plain, inputs);
  ASSERT_TRUE(source->has_labels());
  EXPECT_EQ(source->read(0).inputs.at("x"), Tensor::of<float>({1, 1, 2, 2}, {0, 255, 2, 3}));
  EXPECT_EQ(source->read(0).label, 9);
  EXPECT_EQ(source->read(1).label, 5);

  write_gzip(folder.path("z-images-idx3-ubyte.gz"), idx({2, 2, 2}, pixels));
  write_gzip(folder.path("z-labels-idx1-ubyte.gz"), idx({2}, "\x01\x02"));
  DataOptions options;
  options.path = folder.path("z-images-idx3-ubyte.gz");
  options.image.mean = {1};
  options.image.std = {2};
  const auto packed = open_data(options, {input("x", DType::Float32, {-1, 4})});
  EXPECT_EQ(packed->read(1).inputs.at("x"), Tensor::of<float>({1, 4}, {1.5, 2, 2.5, 3}));
  EXPECT_EQ(packed->read(1).label, 2);
  const auto bytes = open(plain, {input("x", DType::UInt8, {-1, 2, 2, 1})});
  EXPECT_EQ(bytes->read(0).inputs.at("x"), Tensor::of<std::uint8_t>({1, 2, 2, 1}, {0, 255, 2, 3}));
}

TEST(IdxSource, BadFilesAreNamed) {
  const TempFolder folder;
  const std::vector<Value> inputs = {input("x", DType::Float32, {-1, 1, 2, 2})};
  const auto what = [&](const std::string& text, ErrorKind kind = ErrorKind::BadData) {
    const auto path = folder.write("bad-idx3", text);
    const std::string error = error_of(kind, [&] { open(path, inputs); });
    expect_contains(error, {"bad-idx3"});
    return error;
  };
  what(idx({2, 2, 2}, "1234567"));
  what(idx({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "1"));
  what(idx({0xFFFFFF, 2, 2}, "1"));
  what(idx({1, 3, 3}, "123456789"));
  what("hello");
  folder.write("u-labels-idx1-ubyte", idx({3}, "123"));
  const auto images = folder.write("u-images-idx3-ubyte", idx({1, 2, 2}, "1234"));
  expect_contains(error_of(ErrorKind::BadData, [&] { open(images, inputs); }),
                  {"u-labels-idx1-ubyte", "3 labels", "1 samples"});
}

std::string cifar_record(int label, int base) {
  std::string record(1, static_cast<char>(label));
  for (int i = 0; i < 3072; ++i) record += static_cast<char>((base + i / 1024 * 50 + i % 7) & 0xFF);
  return record;
}

TEST(CifarSource, PlanesLayoutAndColourOrder) {
  const TempFolder folder;
  const auto path = folder.write("part.bin", cifar_record(3, 0) + cifar_record(8, 100));
  const auto source = open(path, {input("x", DType::Float32, {-1, 3, 32, 32})});
  ASSERT_EQ(source->size(), 2);
  EXPECT_EQ(source->read(0).label, 3);
  EXPECT_EQ(source->read(1).label, 8);
  EXPECT_EQ(source->read(1).name, "part.bin#1");
  const std::vector<float> x = floats(source->read(1).inputs.at("x"));
  for (std::size_t i = 0; i < 3072; ++i) {
    ASSERT_EQ(x[i], static_cast<float>((100 + i / 1024 * 50 + i % 7) & 0xFF)) << i;
  }
  DataOptions options;
  options.path = path;
  options.image.color = ColorOrder::Bgr;
  options.image.mean = {10, 20, 30};
  options.image.std = {1, 2, 4};
  const auto last = open_data(options, {input("x", DType::Float32, {1, 32, 32, 3})});
  const std::vector<float> y = floats(last->read(0).inputs.at("x"));
  // The pixel at 40: 40 % 7 = 5 in plane 0, (1024 + 40) % 7 = 0, (2048 + 40) % 7 = 2.
  EXPECT_EQ(y[120], static_cast<float>((100 + 2 - 10) / 1.0));
  EXPECT_EQ(y[121], static_cast<float>((50 + 0 - 20) / 2.0));
  EXPECT_EQ(y[122], static_cast<float>((0 + 5 - 30) / 4.0));
}

TEST(CifarSource, FoldersOfBatches) {
  const TempFolder folder;
  folder.write("d/data_batch_1.bin", cifar_record(1, 0) + cifar_record(2, 0));
  folder.write("d/data_batch_2.bin", cifar_record(3, 0));
  const std::vector<Value> inputs = {input("x", DType::Float32, {-1, 3, 32, 32})};
  const auto source = open(folder.path("d"), inputs);
  ASSERT_EQ(source->size(), 3);
  EXPECT_EQ(source->read(2).label, 3);
  EXPECT_EQ(source->read(2).name, "data_batch_2.bin#0");
  folder.write("d/test_batch.bin", cifar_record(1, 0));
  expect_contains(error_of(ErrorKind::BadData, [&] { open(folder.path("d"), inputs); }),
                  {"training and test", "test_batch.bin"});
  folder.write("e/test_batch.bin", cifar_record(1, 0) + "x");
  expect_contains(error_of(ErrorKind::BadData, [&] { open(folder.path("e"), inputs); }),
                  {"test_batch.bin", "3074", "3073"});
}

TEST(LabelFiles, InOrderFromTextAndNpy) {
  const TempFolder folder;
  write_npy(Tensor::of<float>({3, 1}, {1, 2, 3}), folder.path("x.npy"));
  write_npy(Tensor::of<std::int32_t>({3}, {7, 8, 9}), folder.path("y.npy"));
  const std::vector<Value> inputs = {input("x", DType::Float32, {-1, 1})};
  const std::string x = folder.path("x.npy");
  EXPECT_EQ(open(x, inputs, folder.path("y.npy"))->read(2).label, 9);
  EXPECT_EQ(open(x, inputs, folder.write("y.txt", "4\n\n5\r\n6"))->read(1).label, 5);
  const auto what = [&](const std::string& text) {
    const auto labels = folder.write("bad.txt", text);
    const std::string error = error_of(ErrorKind::BadData, [&] { open(x, inputs, labels); });
    expect_contains(error, {"bad.txt"});
    return error;
  };
  expect_contains(what("1\n2\n"), {"2 labels", "x.npy", "3 samples"});
  expect_contains(what("1\n-2\n3\n"), {"bad.txt:2", "'-2'"});
  expect_contains(what("1\na 2\n3\n"), {"bad.txt:2"});
  expect_contains(what("a.jpg 1\nb.jpg cat\n"), {"bad.txt:2", "'name index'"});
  expect_contains(what("a 1\nb 2\nc 3\n"), {"x.npy", "order"});
  expect_contains(what("a 1\na 2\n"), {"bad.txt:2", "'a'", "line 1"});
  what("");
  write_npy(Tensor::of<float>({3}, {7, 8, 9}), folder.path("f.npy"));
  expect_contains(error_of(ErrorKind::BadData, [&] { open(x, inputs, folder.path("f.npy")); }),
                  {"f.npy", "float32"});
}

TEST(LabelFiles, ByNameMustMatchTheFolder) {
  const TempFolder folder;
  folder.write("d/b c.bin", bytes_of<float>({2}));
  folder.write("d/a.bin", bytes_of<float>({1}));
  folder.write("d/readme.txt", "ignored");
  const std::vector<Value> inputs = {input("x", DType::Float32, {-1, 1})};
  const auto open_with = [&](const std::string& text) {
    return open(folder.path("d"), inputs, folder.write("l.txt", text));
  };
  const auto source = open_with("val/b c.bin 4\na.bin\t3\n");
  ASSERT_EQ(source->size(), 2);
  EXPECT_EQ(source->read(0).label, 3);
  EXPECT_EQ(source->read(1).label, 4);
  EXPECT_EQ(floats(source->read(1).inputs.at("x")), std::vector<float>{2});
  expect_contains(error_of(ErrorKind::BadData, [&] { open_with("a.bin 1\n"); }),
                  {"'b c.bin'", "no label", "l.txt"});
  expect_contains(error_of(ErrorKind::BadData, [&] { open_with("a.bin 1\nb c.bin 2\nz.bin 3\n"); }),
                  {"'z.bin'", "not in"});
}

TEST(Limits, TakeTheFirstSamples) {
  const TempFolder folder;
  write_npy(Tensor::of<float>({3, 1}, {1, 2, 3}), folder.path("x.npy"));
  DataOptions options;
  options.path = folder.path("x.npy");
  options.limit = 2;
  const std::vector<Value> inputs = {input("x", DType::Float32, {-1, 1})};
  EXPECT_EQ(open_data(options, inputs)->size(), 2);
  options.limit = 9;
  std::string warning;
  Context context;
  context.log = [&](LogLevel, std::string_view line) { warning = line; };
  EXPECT_EQ(open_data(options, inputs, context)->size(), 3);
  expect_contains(warning, {"x.npy", "3", "9"});
  options.limit = -1;
  error_of(ErrorKind::Usage, [&] { open_data(options, inputs); });
}

TEST(Folders, WhatCannotBeReadIsNamed) {
  const TempFolder folder;
  const std::vector<Value> inputs = {input("x", DType::Float32, {-1, 3, 4, 4})};
  const auto what = [&](const std::string& path, ErrorKind kind) {
    return error_of(kind, [&] { open(path, inputs); });
  };
  folder.write("empty/readme.txt", "text");
  expect_contains(what(folder.path("empty"), ErrorKind::BadData), {"empty", "no samples"});
  folder.write("mixed/a.bin", "1");
  folder.write("mixed/b.jpg", "1");
  expect_contains(what(folder.path("mixed"), ErrorKind::BadData), {"'a.bin'", "'b.jpg'"});
  expect_contains(what(folder.path("nowhere"), ErrorKind::Io), {"nowhere"});
  expect_contains(what(folder.write("x.tar", "text"), ErrorKind::BadData), {"x.tar"});
  expect_contains(what("", ErrorKind::Usage), {"empty"});
}

}  // namespace
}  // namespace quench
