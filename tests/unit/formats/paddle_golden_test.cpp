// SPDX-License-Identifier: Apache-2.0
// Paddle's own models compute here what Paddle's runtimes recorded, quantised ones too.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "data/npy.h"
#include "quench/session.h"
#include "support/paths.h"

namespace quench::testing {
namespace {

namespace fs = std::filesystem;

struct Golden {
  const char* name;
  const char* model;   ///< below the shared folder
  const char* record;  ///< of inputs and outputs, there too
  const char* input;
  const char* output;
  float tolerance;  ///< of floats, relative to the largest output
};

// The old form rounds halves away from zero, which ONNX's operators do not.
const Golden kGolden[] = {
    {"classifier", "models/paddle/ch_ppocr_mobile_v2.0_cls",
     "data/paddle-golden/ppocr_v2_cls_paddle2.6.2.npz", "input", "output", 1e-4F},
    {"pplcnet_pir", "models/paddle/PP-LCNet_x0_25_textline_ori",
     "data/paddle-golden/pplcnet_textline_paddle3.3.1.npz", "input", "output", 1e-4F},
    {"new_form", "data/paddle-golden/quantised/q_onnx",
     "data/paddle-golden/quantised/q_onnx/io_paddle2.6.2.npz", "input", "output_emulated", 1e-4F},
    {"out_threshold", "data/paddle-golden/quantised/w_outthr",
     "data/paddle-golden/quantised/w_outthr/io_paddle2.6.2.npz", "input", "output_emulated", 1e-4F},
    {"old_form", "data/paddle-golden/quantised/q_old",
     "data/paddle-golden/quantised/q_old/io_paddle2.6.2.npz", "input", "output_emulated", 1e-3F},
    {"new_interface", "data/paddle-golden/quantised/newapi/p2_ptq_absmax.pdmodel",
     "data/paddle-golden/quantised/newapi/p2_ptq_absmax.npz", "x", "y", 1e-4F},
    {"trained", "data/paddle-golden/quantised/newapi/p2_qat_fake.pdmodel",
     "data/paddle-golden/quantised/newapi/p2_qat_fake.npz", "x", "y", 1e-4F},
    {"new_interface_pir", "data/paddle-golden/quantised/newapi/p3b16_ptq_absmax.json",
     "data/paddle-golden/quantised/newapi/p3b16_ptq_absmax.npz", "x", "y", 1e-4F},
};

class PaddleGolden : public ::testing::TestWithParam<Golden> {
 protected:
  void SetUp() override {
    if (!fs::exists(shared_dir() / GetParam().record)) GTEST_SKIP() << "no shared folder";
  }
  static std::vector<float> read(const char* member) {
    return to_float(data::read_npz((shared_dir() / GetParam().record).string(), member));
  }
  static std::vector<float> run(bool integer) {
    Session session(load((shared_dir() / GetParam().model).string()), {.integer = integer});
    const Tensor input =
        data::read_npz((shared_dir() / GetParam().record).string(), GetParam().input);
    const TensorMap found = session.run({{session.inputs().front().name, input}});
    return to_float(found.begin()->second);
  }
};

TEST_P(PaddleGolden, FloatsAreThoseOfPaddle) {
  const std::vector<float> wanted = read(GetParam().output);
  const std::vector<float> found = run(false);
  ASSERT_EQ(found.size(), wanted.size());
  float most = 0;
  for (const float value : wanted) most = std::max(most, std::abs(value));
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], wanted[i], GetParam().tolerance * most) << i;
  }
}

TEST_P(PaddleGolden, IntegersGiveTheSameAnswers) {
  const std::vector<float> wanted = read(GetParam().output);
  const std::vector<float> found = run(true);
  ASSERT_EQ(found.size(), wanted.size());
  double product = 0, a = 0, b = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    product += double{found[i]} * wanted[i];
    a += double{found[i]} * found[i];
    b += double{wanted[i]} * wanted[i];
  }
  EXPECT_GE(product / std::sqrt(a * b), 0.999);
}

/// A file for each parameter, old recurrent layers, and the best path through tags (crf_decoding).
TEST(PaddleGoldenTags, AreThoseOfPaddle) {
  const fs::path folder = shared_dir() / "models/paddle/lac_seg";
  const std::string record = (shared_dir() / "data/paddle-golden/lac_seg_paddle2.6.2.npz").string();
  if (!fs::exists(record)) GTEST_SKIP() << "no shared folder";
  Session session(load(folder.string()));
  const TensorMap found =
      session.run({{session.inputs().front().name, data::read_npz(record, "input")}});
  const Tensor wanted = data::read_npz(record, "output");
  const Tensor& tags = found.begin()->second;
  EXPECT_EQ(tags.shape(), wanted.shape());
  EXPECT_EQ(to_float(tags), to_float(wanted));
}

INSTANTIATE_TEST_SUITE_P(All, PaddleGolden, ::testing::ValuesIn(kGolden),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace quench::testing
