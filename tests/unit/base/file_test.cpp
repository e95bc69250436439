// SPDX-License-Identifier: Apache-2.0
// Files: a failed write leaves the old one, dropped pages come back.
#include "base/file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "quench/error.h"

namespace quench {
namespace {

namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::temp_directory_path() / (std::string("quench_file_test_") + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static void put(const std::string& where, const std::string& text) {
    std::ofstream(where, std::ios::binary) << text;
  }
  static std::string get(const std::string& where) {
    std::ifstream file(where, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::size_t num_files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST_F(FileTest, UncommittedWriteLeavesTheOldFileAndNothingElse) {
  put(path("model"), "old");
  {
    AtomicFile file(path("model"));
    file.write(bytes_of("half of the new"));
  }
  EXPECT_EQ(get(path("model")), "old");
  EXPECT_EQ(num_files(), 1U);
}

TEST_F(FileTest, CommittedWriteReplacesTheOldFile) {
  put(path("model"), "old");
  AtomicFile file(path("model"));
  file.write(bytes_of("new"));
  file.commit();
  EXPECT_EQ(get(path("model")), "new");
  EXPECT_EQ(num_files(), 1U);
}

TEST_F(FileTest, UnwritableFolderIsNamed) {
  try {
    const AtomicFile file(path("no/such/folder/model"));
    FAIL() << "it was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Io);
    EXPECT_NE(std::string(error.what()).find("no/such/folder/model"), std::string::npos);
  }
}

TEST_F(FileTest, MappedBytesSurviveTheRemovalOfTheFile) {
  put(path("weights"), std::string(100000, 'w'));
  const auto file = MappedFile::open(path("weights"));
  fs::remove(path("weights"));
  EXPECT_TRUE(std::ranges::all_of(file->bytes(), [](std::byte b) { return b == std::byte{'w'}; }));
}

TEST_F(FileTest, DroppedPagesAreReadAgain) {
  put(path("weights"), std::string(100000, 'w'));
  const auto file = MappedFile::open(path("weights"));
  release_pages(file->bytes());
  EXPECT_EQ(file->bytes()[50000], std::byte{'w'});
}

TEST_F(FileTest, PagesOfOrdinaryMemoryAreNeverDropped) {
  std::vector<std::byte> memory(100000, std::byte{7});
  release_pages(memory);
  EXPECT_TRUE(std::ranges::all_of(memory, [](std::byte b) { return b == std::byte{7}; }));
}

TEST_F(FileTest, EmptyFilesMapToNothing) {
  put(path("empty"), "");
  EXPECT_TRUE(MappedFile::open(path("empty"))->bytes().empty());
}

TEST_F(FileTest, FoldersAndMissingFilesAreErrors) {
  EXPECT_THROW(MappedFile::open(folder_.string()), Error);
  EXPECT_THROW(MappedFile::open(path("missing")), Error);
}

}  // namespace
}  // namespace quench
