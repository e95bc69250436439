// SPDX-License-Identifier: Apache-2.0
// The files of a job: none is read and written, and all appear together or none does.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "quench/error.h"
#include "quench/files.h"

namespace quench {
namespace {

namespace fs = std::filesystem;

class OutputsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("quench_outputs_test_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string put(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  std::string get(const std::string& name) const { return read_text(path(name)); }
  std::size_t num_files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  static void expect_refused(const std::function<void()>& work, const std::string& words) {
    try {
      work();
      ADD_FAILURE() << "not refused: " << words;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Usage);
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }

  fs::path folder_;
};

TEST_F(OutputsTest, WhatIsReadIsNotWritten) {
  put("model", "m");
  fs::create_symlink("model", path("link"));
  fs::create_hard_link(path("model"), path("second"));
  Outputs outputs;
  outputs.reads(path("model"), "the model");
  for (const char* name : {"model", "link", "second", "./model"}) {
    expect_refused([&] { outputs.writes(path(name), "the report"); },
                   "the report cannot be written to '" + path(name) +
                       "': this run reads the model from there");
  }
  EXPECT_NO_THROW(outputs.writes(path("other"), "the report"));
  EXPECT_EQ(num_files(), 3U) << "a check leaves nothing";
}

TEST_F(OutputsTest, TheOrderDoesNotMatter) {
  put("labels", "1");
  Outputs outputs;
  outputs.writes(path("labels"), "the report");
  expect_refused([&] { outputs.reads(path("labels"), "the labels"); }, "reads the labels");
}

TEST_F(OutputsTest, NothingIsWrittenTwice) {
  Outputs outputs;
  outputs.writes(path("out"), "the model");
  EXPECT_NO_THROW(outputs.writes(path("out"), "the model")) << "said by two parts of a job";
  expect_refused([&] { outputs.writes(path("x/../out"), "the report"); }, "writes the model there");
}

TEST_F(OutputsTest, SamplesOfAFolderAreRead) {
  fs::create_directory(path("images"));
  put("images/a.png", "p");
  put("images/old.onnx", "m");
  Outputs outputs;
  outputs.reads_folder(path("images"), "the samples",
                       [](const std::string& name) { return name.ends_with(".png"); });
  expect_refused([&] { outputs.writes(path("images/a.png"), "the report"); }, "reads the samples");
  EXPECT_NO_THROW(outputs.writes(path("images/old.onnx"), "the model"));
  EXPECT_NO_THROW(outputs.writes(path("images/new.png"), "the report"));
}

TEST_F(OutputsTest, FilesAppearTogether) {
  put("a", "old");
  put("gone", "old");
  Outputs outputs;
  write_text(path("a"), "new", outputs);
  write_text(path("b"), "new", outputs);
  outputs.removes(path("gone"));
  EXPECT_EQ(get("a"), "old");
  EXPECT_FALSE(fs::exists(path("b")));
  outputs.commit();
  EXPECT_EQ(get("a"), "new");
  EXPECT_EQ(get("b"), "new");
  EXPECT_EQ(num_files(), 2U);
}

TEST_F(OutputsTest, WithoutCommitNothingChanges) {
  put("a", "old");
  {
    Outputs outputs;
    write_text(path("a"), "new", outputs);
    write_text(path("b"), "new", outputs);
    outputs.removes(path("a"));
  }
  EXPECT_EQ(get("a"), "old");
  EXPECT_EQ(num_files(), 1U);
}

TEST_F(OutputsTest, InputsAreSafeEvenWhereNobodyAskedFirst) {
  put("model", "m");
  Outputs outputs;
  outputs.reads(path("model"), "the model");
  expect_refused([&] { write_text(path("model"), "text", outputs); }, "reads the model");
  outputs.commit();
  EXPECT_EQ(get("model"), "m");
}

TEST_F(OutputsTest, MoreFilesThanDescriptors) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = 32, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  Outputs outputs;
  for (int i = 0; i < 100; ++i) write_text(path(std::to_string(i)), "text", outputs);
  outputs.commit();
  EXPECT_EQ(num_files(), 100U);
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace quench
