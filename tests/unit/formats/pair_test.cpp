// SPDX-License-Identifier: Apache-2.0
// A model and its data file fit each other whenever a process is killed.
#include "formats/onnx/pair.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/onnx/file.h"
#include "quench/formats.h"
#include "unit/formats/onnx_builder.h"

namespace quench::testing {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

/// A model whose external weight is `value`, and whose doc says so.
Model model_of(float value) {
  Model model = load_proto(small_model());
  const std::vector<float> values(5000, value);
  const ValueId w = model.graph.add_constant("w", Tensor::of<float>({5000}, values));
  model.graph[w].form = ConstantForm::External;
  model.doc = std::to_string(value);
  return model;
}

/// The value of a model that fits its data, or NaN.
float value_at(const std::string& path) {
  const Model model = load(path);
  const float value = model.graph.constant(model.graph.find("w"))->data<float>()[4999];
  return model.doc == std::to_string(value) ? value : std::numeric_limits<float>::quiet_NaN();
}

/// Replaces a model and is killed behind `steps` steps.
void killed_after(int steps, const std::string& path, float value) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto* staged =
        static_cast<onnx::StagedPair*>(onnx::stage_file(model_of(value), path, {}).release());
    staged->finish();
    for (int i = 0; i < steps; ++i) staged->step(i);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
}

class Pair : public ::testing::Test {
 protected:
  Folder folder_;
  std::string path_ = folder_ / "m.onnx";
};

TEST_F(Pair, FitsWheneverTheProcessIsKilled) {
  for (int steps = 0; steps <= onnx::StagedPair::kSteps; ++steps) {
    save(model_of(1), path_);
    killed_after(steps, path_, 2);
    EXPECT_EQ(value_at(path_), steps == 0 ? 1 : 2) << steps;
    save(model_of(3), path_);
    EXPECT_EQ(value_at(path_), 3) << steps;
    EXPECT_EQ(folder_.names(), (Names{"m.onnx", "m.onnx.data"})) << "behind step " << steps;
  }
}

TEST_F(Pair, FitsWheneverTheFirstOneIsKilled) {
  for (int steps = 0; steps <= onnx::StagedPair::kSteps; ++steps) {
    killed_after(steps, path_, 2);
    if (steps > 0) {
      EXPECT_EQ(value_at(path_), 2) << steps;
    }
    save(model_of(3), path_);
    EXPECT_EQ(value_at(path_), 3) << steps;
    EXPECT_EQ(folder_.names(), (Names{"m.onnx", "m.onnx.data"})) << "behind step " << steps;
    fs::remove(path_);
    fs::remove(folder_ / "m.onnx.data");
  }
}

TEST_F(Pair, FitsWhenKilledAgainAndAgain) {
  save(model_of(1), path_);
  for (int i = 0; i < 25; ++i) {
    const float before = value_at(path_);
    const auto next = static_cast<float>(i + 2);
    killed_after(i * 7 % (onnx::StagedPair::kSteps + 1), path_, next);
    EXPECT_TRUE(value_at(path_) == before || value_at(path_) == next) << i;
  }
  save(model_of(1), path_);
  EXPECT_EQ(folder_.names(), (Names{"m.onnx", "m.onnx.data"}));
}

TEST_F(Pair, ModelWithDataInsideTidiesUp) {
  save(model_of(1), path_);
  killed_after(0, path_, 2);
  save(load_proto(small_model()), path_);
  EXPECT_EQ(folder_.names(), Names{"m.onnx"}) << "no other model in the folder names the old data";
}

TEST_F(Pair, FilesOfOthersAreNotTouched) {
  save(model_of(1), folder_ / "a.onnx");
  fs::rename(folder_ / "a.onnx.data", folder_ / "b.onnx.data");
  std::string text = read_bytes(folder_ / "a.onnx");
  for (std::size_t at = 0; (at = text.find("a.onnx.data")) != std::string::npos;) text[at] = 'b';
  write_bytes(folder_ / "a.onnx", text);
  write_bytes(folder_ / "b.onnx.data.old", "a user's own");
  save(model_of(2), folder_ / "b.onnx");
  EXPECT_EQ(value_at(folder_ / "a.onnx"), 1);
  EXPECT_EQ(value_at(folder_ / "b.onnx"), 2);
  save(model_of(3), folder_ / "b.onnx");
  EXPECT_EQ(value_at(folder_ / "a.onnx"), 1);
  EXPECT_EQ(value_at(folder_ / "b.onnx"), 3);
  EXPECT_EQ(folder_.names(),
            (Names{"a.onnx", "b.onnx", "b.onnx.1.data", "b.onnx.data", "b.onnx.data.old"}));
}

TEST_F(Pair, DataFileOfAnInputIsAnInput) {
  save(model_of(1), path_);
  fs::copy(path_, folder_ / "copy.onnx");
  Outputs outputs;
  reads_model(outputs, folder_ / "copy.onnx", "the model");
  try {
    writes_model(outputs, path_, "the result");
    FAIL() << "the weights of copy.onnx would be lost";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Usage);
    EXPECT_NE(std::string(error.what()).find("m.onnx.data"), std::string::npos) << error.what();
  }
}

TEST_F(Pair, ModeOfAnOldModelHoldsForNewData) {
  save(load_proto(small_model()), path_);
  fs::permissions(path_, fs::perms(0600));
  save(model_of(1), path_);
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms(0600));
  EXPECT_EQ(fs::status(path_ + ".data").permissions(), fs::perms(0600));
}

TEST_F(Pair, LinkToAModelIsKept) {
  fs::create_directory(folder_ / "store");
  save(load_proto(small_model()), folder_ / "store/real.onnx");
  fs::create_symlink("store/real.onnx", path_);
  save(model_of(1), path_);
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_EQ(value_at(path_), 1);
}

TEST(SavePath, TakesTheExtensionsOfFormatsOnly) {
  const Folder folder;
  for (const char* name : {"m.pb", "m.ms", "m", "onnx", "m.onnx.bak"}) {
    try {
      save(load_proto(small_model()), folder / name);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Usage);
      EXPECT_NE(std::string(error.what()).find(".onnx or .qnch or .pdmodel"), std::string::npos);
    }
  }
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace quench::testing
