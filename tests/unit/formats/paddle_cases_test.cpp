// SPDX-License-Identifier: Apache-2.0
// Programs that Paddle itself wrote, a family of operators each: what they compute here is what
// Paddle computed. paddle_cases/make.py records them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>

#include "data/npy.h"
#include "formats/paddle/rows.h"
#include "quench/error.h"
#include "quench/session.h"
#include "support/paths.h"

namespace quench::testing {
namespace {

namespace fs = std::filesystem;

fs::path cases() { return source_dir() / "tests/unit/formats/paddle_cases"; }

/// Relative to the largest number of the tensor.
void expect_near(const Tensor& found, const Tensor& wanted, const std::string& name) {
  EXPECT_EQ(found.shape(), wanted.shape()) << name;
  EXPECT_EQ(found.dtype(), wanted.dtype()) << name;
  if (found.size() != wanted.size()) return;
  const std::vector<float> x = to_float(found);
  const std::vector<float> y = to_float(wanted);
  float most = 0;
  for (const float value : y) most = std::max(most, std::isfinite(value) ? std::abs(value) : 0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(y[i])) {
      EXPECT_TRUE(std::isnan(x[i])) << name;
    } else {
      ASSERT_NEAR(x[i], y[i], 1e-4F * std::max(most, 1e-6F)) << name << "[" << i << "]";
    }
  }
}

void expect_recorded(const std::string& model, const std::string& family,
                     const std::string& written = "") {
  fs::path beside = (cases() / model).replace_extension(".npz");  // where versions differ
  if (!fs::exists(beside)) beside = cases() / (family + ".npz");
  const std::string recorded = beside.string();
  Session session(load(written.empty() ? (cases() / model).string() : written));
  TensorMap feeds;
  std::vector<Tensor> wanted;
  for (const std::string& name : data::npz_members(recorded)) {
    if (name.starts_with("in")) feeds[name] = data::read_npz(recorded, name);
    if (name.starts_with("out")) wanted.push_back(data::read_npz(recorded, name));
  }
  const TensorMap found = session.run(feeds);
  ASSERT_EQ(session.outputs().size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::string& name = session.outputs()[i].name;
    expect_near(found.at(name), wanted[i], family + " " + std::to_string(i) + " " + name);
  }
}

std::vector<std::string> families() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(cases())) {
    if (entry.path().extension() == ".npz") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

class PaddleCases : public ::testing::TestWithParam<std::string> {};

TEST_P(PaddleCases, ProgramsComputeWhatPaddleDid) {
  if (!fs::exists(cases() / (GetParam() + ".pdmodel"))) GTEST_SKIP() << "recorded as PIR only";
  expect_recorded(GetParam() + ".pdmodel", GetParam());
}

TEST_P(PaddleCases, PirComputesWhatPaddleDid) {
  const std::string model = "pir/" + GetParam() + ".json";
  if (!fs::exists(cases() / model)) GTEST_SKIP() << "recorded as a program only";
  expect_recorded(model, GetParam());
}

TEST_P(PaddleCases, PirBecomesAProgram) {
  const std::string model = "pir/" + GetParam() + ".json";
  if (!fs::exists(cases() / model)) GTEST_SKIP() << "recorded as a program only";
  const std::set<std::string> without{"unpool", "place", "order", "lp_pool", "array", "filled"};
  if (without.contains(GetParam())) {
    GTEST_SKIP() << "unpool, set_value of numbers, medians, lp_pool2d and arrays have no form in "
                    "programs yet";
  }
  const fs::path folder = fs::path(::testing::TempDir()) / ("quench_pir_" + GetParam());
  fs::create_directories(folder);
  const std::string program = (folder / "m.pdmodel").string();
  save(load((cases() / model).string()), program);
  expect_recorded(model, GetParam(), program);
  fs::remove_all(folder);
}

/// Bytes that are changed at random give an error that is not our own mistake, or a model.
void expect_harmless(const fs::path& model, unsigned seed) {
  std::ifstream file(model, std::ios::binary);
  const std::string right{std::istreambuf_iterator<char>(file), {}};
  std::mt19937 random(seed);
  const fs::path folder = fs::path(::testing::TempDir()) / "quench_paddle_mutants";
  fs::create_directories(folder);
  const std::string path = (folder / model.filename()).string();
  fs::path params = model;
  params.replace_extension(".pdiparams");
  if (fs::exists(params)) {
    fs::copy_file(params, folder / params.filename(), fs::copy_options::overwrite_existing);
  }
  for (int turn = 0; turn < 40; ++turn) {
    std::string bytes = right;
    for (unsigned i = 0; i < 1 + random() % 8; ++i) {
      bytes[random() % bytes.size()] = static_cast<char>(random() % 256);
    }
    std::ofstream(path, std::ios::binary) << bytes;
    try {
      (void)load(path);
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::Internal) << error.what() << ", turn " << turn;
    }
  }
  fs::remove_all(folder);
}

TEST_P(PaddleCases, DamagedFilesAreErrors) {
  for (const std::string& model : {GetParam() + ".pdmodel", "pir/" + GetParam() + ".json"}) {
    if (fs::exists(cases() / model)) expect_harmless(cases() / model, 1);
  }
}

/// Every file of programs that the tests hold, and the tests themselves.
std::string all_cases() {
  std::string text;
  for (const auto& entry : fs::recursive_directory_iterator(source_dir() / "tests/unit/formats")) {
    const fs::path& path = entry.path();
    const std::string kind = path.extension().string();
    if (kind != ".pdmodel" && kind != ".json" && kind != ".cpp") continue;
    std::ifstream file(path, std::ios::binary);
    text.append(std::istreambuf_iterator<char>(file), {});
  }
  return text;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool names(const std::string& text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !is_word(text[at - 1]);
    const std::size_t end = at + word.size();
    // Behind the name of an operator that works in place PIR has a "_".
    if (begins && (end == text.size() || !is_word(text[end]) || text.substr(end, 2) == "_\"")) {
      return true;
    }
  }
  return false;
}

TEST(PaddleRows, EachIsInSomeTest) {
  const std::string text = all_cases();
  for (const paddle::OpRow* row : paddle::all_rows()) {
    const bool found = names(text, row->name) ||
                       std::ranges::any_of(paddle::parts_of(row->pir, ' '),
                                           [&](std::string_view pir) { return names(text, pir); });
    EXPECT_TRUE(found) << row->name << ": no program in tests/unit/formats has it";
  }
}

INSTANTIATE_TEST_SUITE_P(All, PaddleCases, ::testing::ValuesIn(families()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace quench::testing
