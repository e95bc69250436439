// SPDX-License-Identifier: Apache-2.0
// Tensors whose bytes are brought in when they are wanted, and leave again.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/window.h"
#include "quench/error.h"
#include "tensor/overflow.h"

namespace quench {
namespace {

namespace fs = std::filesystem;

/// Counts how often it is asked, and how many of its bytes are in memory.
struct Counted {
  int made = 0;
  std::weak_ptr<const void> last;

  Tensor tensor() {
    return Tensor::made(DType::Float32, {2, 2}, [this] {
      ++made;
      Tensor result = Tensor::of<float>({2, 2}, {1.0F, 2.0F, 3.0F, 4.0F});
      last = result.owner();
      return result;
    });
  }
};

TEST(StoredTensor, IsMadeWhenItIsHeldAndGoesAfterwards) {
  Counted counted;
  const Tensor tensor = counted.tensor();
  EXPECT_EQ(tensor.num_bytes(), 16U);
  EXPECT_EQ(counted.made, 0);
  {
    const Tensor held = tensor.held();
    const Tensor again = tensor.held();
    EXPECT_FALSE(held.is_stored());
    EXPECT_EQ(held.data<float>()[3], 4);
    EXPECT_EQ(held.bytes().data(), again.bytes().data());
    EXPECT_EQ(counted.made, 1);
  }
  EXPECT_TRUE(counted.last.expired());
  EXPECT_EQ(to_float(tensor), std::vector<float>({1, 2, 3, 4}));
  EXPECT_EQ(counted.made, 2);
  EXPECT_TRUE(counted.last.expired());
}

TEST(StoredTensor, StaysWhereItIsAskedItselfUntilItIsDropped) {
  Counted counted;
  const Tensor tensor = counted.tensor();
  const Tensor copy = tensor.reshaped({4});
  EXPECT_EQ(tensor.data<float>()[0], 1);
  EXPECT_EQ(copy.data<float>()[1], 2);
  EXPECT_EQ(counted.made, 1);
  EXPECT_FALSE(counted.last.expired());
  tensor.drop();
  EXPECT_TRUE(counted.last.expired());
  EXPECT_EQ(copy.data<float>()[2], 3);
}

TEST(StoredTensor, IsCopiedBeforeItIsWritten) {
  Counted counted;
  const Tensor tensor = counted.tensor();
  Tensor written = tensor;
  written.mutable_data<float>()[0] = 9;
  EXPECT_FALSE(written.is_stored());
  EXPECT_EQ(to_float(tensor)[0], 1);
  EXPECT_EQ(written.data<float>()[0], 9);
  EXPECT_NE(tensor, written);
  EXPECT_EQ(tensor, counted.tensor());
}

class WindowTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("quench_window_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// A file of the bytes 0, 1, ... 255, 0, ...
  std::string counting_file(std::size_t size) const {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i % 256);
    std::ofstream(folder_ / "data", std::ios::binary) << text;
    return (folder_ / "data").string();
  }

  fs::path folder_;
};

TEST_F(WindowTest, PartsAreAlignedWhereverTheyLie) {
  const auto file = WindowedFile::open(counting_file(20000));
  for (const std::uint64_t offset : {0U, 4096U, 4100U, 4101U, 9999U}) {
    const auto bytes = file->part(offset, 1000, 4)->hold();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.get()) % 4, 0U);
    EXPECT_EQ(bytes.get()[999], static_cast<std::byte>((offset + 999) % 256));
  }
}

TEST_F(WindowTest, AFileThatIsRemovedCanStillBeRead) {
  const auto part = WindowedFile::open(counting_file(5000))->part(100, 50, 4);
  fs::remove(folder_ / "data");
  EXPECT_EQ(part->hold().get()[0], std::byte{100});
}

TEST_F(WindowTest, MoreFilesThanAProcessMayOpen) {
  const std::string path = counting_file(5000);
  std::vector<std::shared_ptr<const ByteSource>> parts;
  for (int i = 0; i < 2000; ++i) parts.push_back(WindowedFile::open(path)->part(8, 8, 4));
  EXPECT_EQ(parts.back()->hold().get()[0], std::byte{8});
  fs::remove(path);
  counting_file(5000);
  EXPECT_EQ(parts.front()->hold().get()[0], std::byte{8});
  try {
    (void)parts.back()->hold();
    ADD_FAILURE() << "another file was read in its place";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("another file than before"), std::string::npos);
  }
}

TEST_F(WindowTest, WhatOverflowsWaitsInAFileWithoutAName) {
  Overflow overflow(folder_.string(), 1 << 20);
  std::vector<Tensor> kept;
  for (int i = 0; i < 4; ++i) {
    kept.push_back(overflow.keep(
        Tensor::of<float>({1 << 17}, std::vector<float>(1 << 17, static_cast<float>(i)))));
  }
  EXPECT_FALSE(kept[1].is_stored());
  EXPECT_TRUE(kept[2].is_stored());
  EXPECT_EQ(kept[3].held().data<float>()[1 << 16], 3);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST(Overflow, SaysWhereItCannotWrite) {
  Overflow overflow("/no/such/folder", 0);
  try {
    (void)overflow.keep(Tensor::zeros(DType::Float32, {1 << 17}));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'/no/such/folder'"), std::string::npos);
  }
}

}  // namespace
}  // namespace quench
