// SPDX-License-Identifier: Apache-2.0
// Files: a failed write leaves the old one, dropped pages come back, odd files are refused.
#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <vector>

#include "base/made_folder.h"
#include "quench/error.h"
#include "quench/files.h"

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
  static unsigned mode_of(const std::string& where) {
    return static_cast<unsigned>(fs::status(where).permissions());
  }
  /// Runs `work` in a process that then ends as if it were killed.
  template <typename Work>
  static void in_killed_process(const Work& work) {
    const pid_t child = ::fork();
    if (child == 0) {
      work();
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  static std::string error_of(const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Io);
      return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
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

TEST_F(FileTest, FoldersThatWereMadeForNothingGoAgain) {
  fs::create_directories(path("old"));
  {
    const MadeFolder old(path("old"));
    const MadeFolder fresh(path("new/"));
    const MadeFolder inner(path("new/inner"));
    const MadeFolder kept(path("kept/inner"));
    const MadeFolder shared(path("shared"), /*stays=*/true);
    const MadeFolder none("");
    put(path("kept/inner/snapshot"), "written at once");
    EXPECT_TRUE(fs::exists(path("new/inner")));
  }
  EXPECT_FALSE(fs::exists(path("new")));
  EXPECT_TRUE(fs::exists(path("old")));
  EXPECT_TRUE(fs::exists(path("kept/inner/snapshot")));
  EXPECT_TRUE(fs::exists(path("shared")));
}

TEST_F(FileTest, FolderThatCannotBeMadeLeavesNothing) {
  put(path("file"), "");
  EXPECT_THROW(MadeFolder(path("file/deep")), Error);
  EXPECT_EQ(get(path("file")), "");
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

TEST_F(FileTest, ReplacedFileKeepsItsMode) {
  put(path("secret"), "old");
  fs::permissions(path("secret"), fs::perms(0600));
  AtomicFile file(path("secret"));
  EXPECT_EQ(mode_of(file.temporary_path()), 0600U) << "others could read it meanwhile";
  file.write("new");
  file.commit();
  EXPECT_EQ(get(path("secret")), "new");
  EXPECT_EQ(mode_of(path("secret")), 0600U);
}

TEST_F(FileTest, NewFileHasTheModeThatTheMaskLeaves) {
  const mode_t mask = ::umask(027);
  AtomicFile(path("model")).commit();
  ::umask(mask);
  EXPECT_EQ(mode_of(path("model")), 0640U);
}

TEST_F(FileTest, LinksAreWrittenThrough) {
  fs::create_directory(path("elsewhere"));
  put(path("elsewhere/model"), "old");
  fs::create_symlink("elsewhere/model", path("link"));
  fs::create_symlink("elsewhere/fresh", path("dangling"));
  for (const char* name : {"link", "dangling"}) {
    AtomicFile file(path(name));
    file.write("new");
    file.commit();
    EXPECT_TRUE(fs::is_symlink(path(name)));
    EXPECT_EQ(get(path(name)), "new");
  }
  EXPECT_EQ(get(path("elsewhere/model")), "new");
  EXPECT_EQ(num_files(), 3U);
}

TEST_F(FileTest, OnlyRegularFilesAreReplaced) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  fs::create_directory(path("folder"));
  fs::create_symlink("loop", path("loop"));
  const auto write = [&](const char* name) {
    return error_of([&] { const AtomicFile file(path(name)); });
  };
  EXPECT_NE(write("fifo").find("a FIFO"), std::string::npos);
  EXPECT_NE(write("folder").find("a folder"), std::string::npos);
  EXPECT_NE(write("loop").find("loop"), std::string::npos);
  EXPECT_TRUE(fs::is_fifo(path("fifo")));
  if (::mknod(path("null").c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0) return;  // needs root
  EXPECT_NE(write("null").find("a device"), std::string::npos);
  EXPECT_TRUE(fs::is_character_file(path("null")));
}

TEST_F(FileTest, TheNextWriteRemovesWhatKilledRunsLeft) {
  for (int i = 0; i < 3; ++i) {
    in_killed_process([&] {
      auto* file = new AtomicFile(path("model"));
      file->write("half");
      if (i == 1) file->finish();
    });
  }
  put(path("model.quench-mine"), "a user's own");
  put(path("model2.quench-abc123"), "another's");
  EXPECT_GE(num_files(), 3U);
  AtomicFile file(path("model"));
  file.commit();
  EXPECT_EQ(num_files(), 3U) << "model, and two files that are not its own";
}

TEST_F(FileTest, FilesOfLivingRunsAreLeftAlone) {
  AtomicFile open(path("model"));
  AtomicFile finished(path("model"));
  open.write("one");
  finished.write("two");
  finished.finish();
  in_killed_process([&] { AtomicFile(path("model")).commit(); });
  finished.commit();
  EXPECT_EQ(get(path("model")), "two");
  open.commit();
  EXPECT_EQ(get(path("model")), "one");
}

TEST_F(FileTest, KeptFilesSurvive) {
  std::string name;
  {
    AtomicFile data(path("data"));
    data.write("weights");
    name = fs::path(data.link()).filename();
  }
  ASSERT_FALSE(name.empty());
  AtomicFile(path("data"), {name}).commit();
  EXPECT_EQ(get(path(name)), "weights");
  AtomicFile(path("data")).commit();
  EXPECT_FALSE(fs::exists(path(name)));
}

TEST_F(FileTest, LongNamesCanBeWritten) {
  const std::string name(255, 'n');
  AtomicFile file(path(name));
  file.write("text");
  file.commit();
  EXPECT_EQ(get(path(name)), "text");
}

TEST_F(FileTest, FifosAreRefusedAtOnce) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  for (const auto& read : std::vector<std::function<void()>>{
           [&] { MappedFile::open(path("fifo")); }, [&] { read_bytes(path("fifo")); },
           [&] { read_text(path("fifo")); }, [&] { file_size(path("fifo")); }}) {
    EXPECT_NE(error_of(read).find("fifo': it is not a regular file"), std::string::npos);
  }
}

TEST_F(FileTest, FileThatShrinksIsAnError) {
  put(path("samples"), std::string(10000, 's'));
  const ReadFile file(path("samples"));
  fs::resize_file(path("samples"), 100);
  std::vector<std::byte> bytes(1000);
  file.read(0, std::span(bytes).first(100));
  const std::string error = error_of([&] { file.read(50, bytes); });
  EXPECT_NE(error.find("samples': it had 10000 bytes and has become shorter"), std::string::npos);
}

TEST_F(FileTest, AddressesAreFoundInMappedFiles) {
  put(path("weights"), "w");
  const std::byte* inside = nullptr;
  {
    const auto file = MappedFile::open(path("weights"));
    inside = file->bytes().data();
    ASSERT_NE(mapped_file_at(inside), nullptr);
    EXPECT_EQ(mapped_file_at(inside), path("weights"));
    EXPECT_EQ(mapped_file_at(&file), nullptr);
  }
  EXPECT_EQ(mapped_file_at(inside), nullptr);
}

}  // namespace
}  // namespace quench
