// SPDX-License-Identifier: Apache-2.0
// .npy and .npz files.
#include "data/npy.h"

#include <zip.h>

#include <random>

#include "unit/data/data_testing.h"

namespace quench {
namespace {

using testing::bytes_of;
using testing::error_of;
using testing::expect_contains;
using testing::TempFolder;

std::string npy(const std::string& dict, const std::string& data, int version = 1) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(version);
  text += '\0';
  text += static_cast<char>(dict.size() & 0xFF);
  text += static_cast<char>(dict.size() >> 8);
  if (version > 1) text += std::string(2, '\0');
  return text + dict + data;
}

std::string dict(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

void write_zip(const std::string& path,
               const std::vector<std::pair<std::string, std::string>>& members) {
  int code = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  ASSERT_NE(archive, nullptr);
  for (const auto& [name, text] : members) {
    zip_source_t* source = zip_source_buffer(archive, text.data(), text.size(), 0);
    ASSERT_GE(zip_file_add(archive, name.c_str(), source, 0), 0);
  }
  ASSERT_EQ(zip_close(archive), 0);
}

TEST(Npy, RoundTripKeepsRandomTensors) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const TempFolder folder;
  for (int round = 0; round < 60; ++round) {
    const auto dtypes = all_dtypes();
    const DTypeInfo& row = dtypes[random() % dtypes.size()];
    if (row.numpy.empty() || row.bits % 8 != 0 || row.bits == 0) continue;
    Shape shape;
    for (std::uint64_t rank = random() % 5; rank > 0; --rank) {
      shape.push_back(static_cast<std::int64_t>(random() % 4));
    }
    Tensor tensor = Tensor::zeros(row.dtype, shape);
    for (std::byte& byte : tensor.mutable_bytes()) byte = static_cast<std::byte>(random() & 1U);
    write_npy(tensor, folder.path("t.npy"));
    EXPECT_EQ(read_npy(folder.path("t.npy")), tensor) << row.name << " " << to_string(shape);
  }
}

TEST(Npy, HeaderIsWhatNumPyWrites) {
  const TempFolder folder;
  write_npy(Tensor::of<float>({2, 1}, {1, 2}), folder.path("t.npy"));
  const std::string text = testing::read_text(folder.path("t.npy"));
  ASSERT_EQ(text.size(), 128U + 8U);
  EXPECT_EQ(text.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(text.substr(10, 56), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1)");
  EXPECT_EQ(text[127], '\n');
  write_npy(Tensor::of<float>({1}, {1}), folder.path("one.npy"));
  EXPECT_NE(testing::read_text(folder.path("one.npy")).find("'shape': (1, )"), std::string::npos);
}

TEST(Npy, FortranOrderBecomesRowMajor) {
  const TempFolder folder;
  // [[1,2,3],[4,5,6]] column by column.
  const auto path = folder.write(
      "f.npy", npy(dict("<i4", "True", "(2, 3)"), bytes_of<std::int32_t>({1, 4, 2, 5, 3, 6})));
  EXPECT_EQ(read_npy(path), Tensor::of<std::int32_t>({2, 3}, {1, 2, 3, 4, 5, 6}));
  // a[i,j,k] = 100i + 10j + k of shape (2,2,2).
  const auto cube =
      folder.write("c.npy", npy(dict("|i1", "True", "(2, 2, 2)"),
                                bytes_of<std::int8_t>({0, 100, 10, 110, 1, 101, 11, 111})));
  EXPECT_EQ(read_npy(cube), Tensor::of<std::int8_t>({2, 2, 2}, {0, 1, 10, 11, 100, 101, 110, 111}));
}

TEST(Npy, BigEndianAndUnalignedDataAreRead) {
  const TempFolder folder;
  const auto path = folder.write(
      "b.npy", npy(dict(">i2", "False", "(2,)") + " ", std::string("\x01\x02\x00\x03", 4)));
  EXPECT_EQ(read_npy(path), Tensor::of<std::int16_t>({2}, {0x0102, 3}));
  for (int pad = 0; pad < 4; ++pad) {
    const auto odd = folder.write(
        "odd.npy", npy(dict("<f4", "False", "()") + std::string(static_cast<std::size_t>(pad), ' '),
                       bytes_of<float>({2.5F}), 2));
    EXPECT_EQ(read_npy(odd), Tensor::scalar(2.5F));
  }
}

TEST(Npy, BadFilesAreNamedWithTheReason) {
  const TempFolder folder;
  const std::string good = npy(dict("<f4", "False", "(4,)"), bytes_of<float>({1, 2, 3, 4}));
  const auto reason = [&](const std::string& text, ErrorKind kind = ErrorKind::BadData) {
    const auto path = folder.write("x.npy", text);
    const std::string what = error_of(kind, [&] { read_npy(path); });
    expect_contains(what, {"x.npy"});
    return what;
  };
  for (std::size_t size = 0; size < good.size(); ++size) reason(good.substr(0, size));
  expect_contains(reason("hello"), {"not an .npy file"});
  expect_contains(reason(npy(dict("<f4", "False", "(9223372036854775807, 9)"), "")), {"cut off"});
  expect_contains(reason(npy(dict("<f4", "False", "(-1,)"), "")), {"dimension"});
  expect_contains(reason(npy(dict("<f4", "Maybe", "(1,)"), "")), {"fortran_order"});
  expect_contains(reason(npy("{'descr': '<f4'}", "")), {"shape"});
  expect_contains(reason(npy("{'shape': (1,), 'shape': (1,), 'descr': '<f4'}", "abcd")), {"twice"});
  expect_contains(reason(npy(dict("|O", "False", "(1,)"), "x"), ErrorKind::Unsupported), {"'|O'"});
  expect_contains(reason(npy("{'descr': [('a', '<f4')], }", ""), ErrorKind::Unsupported),
                  {"structured"});
  expect_contains(reason(npy(dict("<f4", "False", "()"), "abcd", 9), ErrorKind::Unsupported),
                  {"version 9"});
}

TEST(Npy, TypesThatNumPyLacksAreRefusedAndLeaveNoFile) {
  const TempFolder folder;
  const auto path = folder.path("t.npy");
  const auto write = [&] { write_npy(Tensor::zeros(DType::Int4, {4}), path); };
  expect_contains(error_of(ErrorKind::Unsupported, write), {"t.npy", "int4"});
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Npz, MembersAreFoundByName) {
  const TempFolder folder;
  const std::string a = npy(dict("<i8", "False", "(1,)"), bytes_of<std::int64_t>({7}));
  const std::string b = npy(dict("<i8", "False", "(1,)"), bytes_of<std::int64_t>({8}));
  write_zip(folder.path("x.npz"), {{"ids.npy", a}, {"mask.npy", b}});
  EXPECT_EQ(read_npy(folder.path("x.npz:mask")), Tensor::of<std::int64_t>({1}, {8}));
  const auto missing = [&] { read_npy(folder.path("x.npz:mast")); };
  expect_contains(error_of(ErrorKind::BadData, missing),
                  {"x.npz", "'mast'", "ids, mask", "'mask'?"});
  const auto all = [&] { read_npy(folder.path("x.npz")); };
  expect_contains(error_of(ErrorKind::BadData, all), {"x.npz", "ids, mask"});
  write_zip(folder.path("one.npz"), {{"only.npy", a}});
  EXPECT_EQ(read_npy(folder.path("one.npz")), Tensor::of<std::int64_t>({1}, {7}));
}

TEST(Npz, DamagedArchivesAreErrors) {
  const TempFolder folder;
  const std::string a = npy(dict("<f4", "False", "(64,)"), std::string(256, 'a'));
  write_zip(folder.path("x.npz"), {{"a.npy", a}});
  const std::string good = testing::read_text(folder.path("x.npz"));
  for (std::size_t size = 0; size < good.size(); size += 3) {
    const auto path = folder.write("cut.npz", good.substr(0, size));
    expect_contains(error_of(ErrorKind::BadData, [&] { read_npy(path); }), {"cut.npz"});
  }
  for (std::size_t at = 30; at < 60; ++at) {
    std::string flipped = good;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x55);
    const auto path = folder.write("flip.npz", flipped);
    try {
      read_npy(path);
    } catch (const Error& error) {
      expect_contains(error.what(), {"flip.npz"});
    }
  }
  expect_contains(error_of(ErrorKind::Io, [&] { read_npy(folder.path("no.npz")); }), {"no.npz"});
}

}  // namespace
}  // namespace quench
