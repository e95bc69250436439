// SPDX-License-Identifier: Apache-2.0
// Folders of images, and each step of their preparation against values worked out here.
#include <cmath>
#include <functional>
#include <opencv2/imgcodecs.hpp>

#include "data/image_header.h"
#include "support/paths.h"
#include "unit/data/data_testing.h"

namespace quench {
namespace {

using testing::error_of;
using testing::expect_contains;
using testing::floats;
using testing::input;
using testing::TempFolder;

using Pixel = std::function<int(int x, int y, int channel)>;

/// A PPM file: red, green, blue for each pixel.
std::string ppm(int width, int height, const Pixel& pixel) {
  std::string text =
      "P6\n# made by a test\n" + std::to_string(width) + " " + std::to_string(height) + "\n255\n";
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) text += static_cast<char>(pixel(x, y, c));
    }
  }
  return text;
}

int pattern(int x, int y, int c) { return (x * 7 + y * 13 + c * 40) % 256; }

struct Images : ::testing::Test {
  std::vector<float> read(const std::vector<Value>& inputs) {
    options.path = folder.path("d");
    return floats(open_data(options, inputs, context)->read(0).inputs.at("x"));
  }
  static Value nhwc(int height, int width, int channels = 3) {
    return input("x", DType::Float32, {-1, height, width, channels});
  }
  Images() { context.module_dir = testing::binary_dir().string(); }

  TempFolder folder;
  DataOptions options;
  Context context;
};

TEST_F(Images, ColourOrderAndLayout) {
  folder.write("d/a.ppm", ppm(4, 2, pattern));
  const std::vector<float> rgb = read({nhwc(2, 4)});
  options.image.color = ColorOrder::Bgr;
  const std::vector<float> bgr = read({nhwc(2, 4)});
  const std::vector<float> planes = read({input("x", DType::Float32, {-1, 3, 2, 4})});
  for (int y = 0; y < 2; ++y) {
    for (int x = 0; x < 4; ++x) {
      for (int c = 0; c < 3; ++c) {
        const auto at = static_cast<std::size_t>((y * 4 + x) * 3 + c);
        EXPECT_EQ(rgb[at], static_cast<float>(pattern(x, y, c)));
        EXPECT_EQ(bgr[at], static_cast<float>(pattern(x, y, 2 - c)));
        EXPECT_EQ(planes[static_cast<std::size_t>((c * 2 + y) * 4 + x)], bgr[at]);
      }
    }
  }
}

TEST_F(Images, GrayIsTheUsualWeightedSum) {
  folder.write("d/a.ppm", ppm(8, 8, pattern));
  const std::vector<float> gray = read({nhwc(8, 8, 1)});
  ASSERT_EQ(gray.size(), 64U);
  for (int y = 0; y < 8; ++y) {
    for (int x = 0; x < 8; ++x) {
      const double wanted =
          0.299 * pattern(x, y, 0) + 0.587 * pattern(x, y, 1) + 0.114 * pattern(x, y, 2);
      EXPECT_NEAR(gray[static_cast<std::size_t>(y * 8 + x)], wanted, 0.51);
    }
  }
  options.image.color = ColorOrder::Gray;
  expect_contains(error_of(ErrorKind::Usage, [&] { read({nhwc(8, 8, 3)}); }), {"GRAY", "'x'"});
}

TEST_F(Images, InputTypesAreConverted) {
  folder.write("d/a.ppm", ppm(2, 1, pattern));
  options.path = folder.path("d");
  const auto read_as = [&](DType dtype) {
    return open_data(options, {input("x", dtype, {-1, 1, 2, 3})}, context)->read(0).inputs.at("x");
  };
  EXPECT_EQ(read_as(DType::UInt8), Tensor::of<std::uint8_t>({1, 1, 2, 3}, {0, 40, 80, 7, 47, 87}));
  EXPECT_EQ(read_as(DType::Float16).dtype(), DType::Float16);
  EXPECT_EQ(to_float(read_as(DType::Float16)), (std::vector<float>{0, 40, 80, 7, 47, 87}));
  EXPECT_EQ(read_as(DType::Int64), Tensor::of<std::int64_t>({1, 1, 2, 3}, {0, 40, 80, 7, 47, 87}));
}

TEST_F(Images, MeanAndStdAreForChannelsOfTheModel) {
  folder.write("d/a.ppm", ppm(1, 1, [](int, int, int c) { return 100 + c; }));
  options.image.mean = {123.675, 116.28, 103.53};
  options.image.std = {58.395, 57.12, 57.375};
  const std::vector<float> rgb = read({nhwc(1, 1)});
  EXPECT_FLOAT_EQ(rgb[0], static_cast<float>((100 - 123.675) / 58.395));
  EXPECT_FLOAT_EQ(rgb[2], static_cast<float>((102 - 103.53) / 57.375));
  options.image.color = ColorOrder::Bgr;
  EXPECT_FLOAT_EQ(read({nhwc(1, 1)})[0], static_cast<float>((102 - 123.675) / 58.395));
  options.image.mean = {127.5};
  options.image.std = {127.5};
  EXPECT_FLOAT_EQ(read({nhwc(1, 1)})[1], static_cast<float>(101 / 127.5 - 1));
}

TEST_F(Images, WrongNormalisationIsRefused) {
  folder.write("d/a.ppm", ppm(1, 1, pattern));
  options.image.mean = {1, 2};
  expect_contains(error_of(ErrorKind::Usage, [&] { read({nhwc(1, 1)}); }), {"mean", "2", "3"});
  options.image.mean = {};
  options.image.std = {1, 0, 1};
  expect_contains(error_of(ErrorKind::Usage, [&] { read({nhwc(1, 1)}); }), {"std", "0"});
}

TEST_F(Images, ResizeNearestAndLinear) {
  folder.write("d/a.ppm", ppm(4, 4, [](int x, int y, int) { return x * 16 + y * 4; }));
  options.image.resize = ImageSize{8, 4};
  options.image.method = ResizeMethod::Nearest;
  const std::vector<float> wide = read({nhwc(4, 8)});
  for (int x = 0; x < 8; ++x) EXPECT_EQ(wide[static_cast<std::size_t>(x) * 3], x / 2 * 16) << x;
  options.image.resize = ImageSize{2, 2};
  options.image.method = ResizeMethod::Linear;
  // Halving a plane averages blocks of 2x2.
  const std::vector<float> half = read({nhwc(2, 2)});
  EXPECT_EQ(half[0], 8 + 2);
  EXPECT_EQ(half[3], 8 + 32 + 2);
  EXPECT_EQ(half[9], 8 + 32 + 2 + 8);
}

// Keys' cubic with a = -0.75, which OpenCV uses.
double cubic(double x) {
  const double a = -0.75;
  x = std::abs(x);
  if (x <= 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  if (x < 2) return a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a;
  return 0;
}

TEST_F(Images, ResizeCubic) {
  const auto value = [](int x) { return (x * x * 9) % 200; };
  folder.write("d/a.ppm", ppm(8, 1, [&](int x, int, int) { return value(x); }));
  options.image.resize = ImageSize{12, 1};
  options.image.method = ResizeMethod::Cubic;
  const std::vector<float> out = read({nhwc(1, 12)});
  for (int x = 0; x < 12; ++x) {
    const double at = (x + 0.5) * 8 / 12 - 0.5;
    double wanted = 0;
    for (int k = -1; k <= 2; ++k) {
      const int src = static_cast<int>(std::floor(at)) + k;
      wanted += value(std::min(7, std::max(0, src))) * cubic(at - src);
    }
    EXPECT_NEAR(out[static_cast<std::size_t>(x) * 3], std::min(255.0, std::max(0.0, wanted)), 1.0);
  }
}

TEST_F(Images, ShorterSideKeepsTheRatioAndCropIsCentred) {
  // 5x3 with the shorter side to 6 gives 10x6; the crop of 4x2 starts at (3, 2).
  folder.write("d/a.ppm", ppm(5, 3, [](int x, int y, int) { return x * 10 + y; }));
  options.image.resize_shorter = 6;
  options.image.method = ResizeMethod::Nearest;
  EXPECT_EQ(read({nhwc(6, 10)}).size(), 180U);
  options.image.center_crop = ImageSize{4, 2};
  const std::vector<float> out = read({nhwc(2, 4)});
  for (int y = 0; y < 2; ++y) {
    for (int x = 0; x < 4; ++x) {
      EXPECT_EQ(out[static_cast<std::size_t>((y * 4 + x) * 3)], (x + 3) / 2 * 10 + (y + 2) / 2);
    }
  }
  // 7 * 5 / 3 = 11.67 is cut to 11.
  options.image.center_crop.reset();
  options.image.resize_shorter = 7;
  EXPECT_EQ(read({nhwc(7, 11)}).size(), 231U);
}

TEST_F(Images, FitPadsOnTheRightWithZeroAfterNormalisation) {
  folder.write("d/a.ppm", ppm(3, 2, [](int, int, int) { return 255; }));
  options.image.resize_fit = ImageSize{8, 4};
  options.image.mean = {127.5};
  options.image.std = {127.5};
  for (const auto order : {NormalizeOrder::Last, NormalizeOrder::First}) {
    options.image.normalize = order;
    const std::vector<float> out = read({nhwc(4, 8)});
    for (int x = 0; x < 8; ++x) {
      EXPECT_FLOAT_EQ(out[static_cast<std::size_t>(24 + x * 3)], x < 6 ? 1.0F : 0.0F) << x;
    }
  }
  // A wider image is squeezed into the box.
  folder.write("d/a.ppm", ppm(30, 2, [](int, int, int) { return 255; }));
  EXPECT_FLOAT_EQ(read({nhwc(4, 8)})[21], 1.0F);
}

TEST_F(Images, NormalisingFirstKeepsFractions) {
  // Two pixels of 0 and 1 halved: 8 bits cannot hold 0.5, floats can.
  folder.write("d/a.ppm", ppm(2, 2, [](int x, int, int) { return x; }));
  options.image.resize = ImageSize{1, 1};
  options.image.std = {2};
  options.image.normalize = NormalizeOrder::First;
  EXPECT_FLOAT_EQ(read({nhwc(1, 1)})[0], 0.25F);
  options.image.normalize = NormalizeOrder::Last;
  const float last = read({nhwc(1, 1)})[0];
  EXPECT_TRUE(last == 0.0F || last == 0.5F) << last;
}

TEST_F(Images, SizesThatDoNotFitAreExplained) {
  folder.write("d/a.ppm", ppm(5, 3, pattern));
  expect_contains(error_of(ErrorKind::BadData, [&] { read({nhwc(4, 4)}); }),
                  {"a.ppm", "5x3", "4x4", "resize"});
  options.image.center_crop = ImageSize{4, 4};
  expect_contains(error_of(ErrorKind::BadData, [&] { read({nhwc(4, 4)}); }),
                  {"a.ppm", "4x4", "5x3"});
  options.image.resize = ImageSize{0, 4};
  expect_contains(error_of(ErrorKind::Usage, [&] { read({nhwc(4, 4)}); }), {"resize", "0,4"});
  options.image.resize = ImageSize{8, 8};
  options.image.resize_shorter = 8;
  error_of(ErrorKind::Usage, [&] { read({nhwc(4, 4)}); });
  options = {};
  const auto flat = [&] { read({input("x", DType::Float32, {-1, 75})}); };
  expect_contains(error_of(ErrorKind::BadData, flat), {"'x'", "images"});
}

TEST_F(Images, FoldersOfClasses) {
  folder.write("d/dog/2.ppm", ppm(1, 1, [](int, int, int) { return 2; }));
  folder.write("d/cat/1.ppm", ppm(1, 1, [](int, int, int) { return 1; }));
  folder.write("d/cat/notes.txt", "ignored");
  options.path = folder.path("d");
  const auto source = open_data(options, {nhwc(1, 1)}, context);
  ASSERT_EQ(source->size(), 2);
  EXPECT_EQ(source->read(0).name, "cat/1.ppm");
  EXPECT_EQ(source->read(0).label, 0);
  EXPECT_EQ(source->read(1).label, 1);
  EXPECT_EQ(floats(source->read(1).inputs.at("x"))[0], 2);
}

std::string encoded(const std::string& extension) {
  cv::Mat image(16, 24, CV_8UC3);
  for (int y = 0; y < 16; ++y) {
    for (int x = 0; x < 24; ++x)
      image.at<cv::Vec3b>(y, x) =
          cv::Vec3b(static_cast<std::uint8_t>(x * 9), static_cast<std::uint8_t>(y * 9), 77);
  }
  std::vector<std::uint8_t> bytes;
  cv::imencode(extension, image, bytes);
  return {bytes.begin(), bytes.end()};
}

class Formats : public Images, public ::testing::WithParamInterface<const char*> {};

TEST_P(Formats, AreDecodedAndKnownWhenCutOff) {
  const std::string extension = GetParam();
  const std::string good = encoded(extension);
  const ImageSize size = data::check_image(std::as_bytes(std::span(good)));
  EXPECT_EQ(size.width, 24);
  EXPECT_EQ(size.height, 16);
  folder.write("d/a" + extension, good);
  const std::vector<float> pixels = read({nhwc(16, 24)});
  EXPECT_NEAR(pixels[(5 * 24 + 10) * 3], 77, 12);
  EXPECT_NEAR(pixels[(5 * 24 + 10) * 3 + 2], 90, 12);
  for (std::size_t left = 0; left + 1 < good.size(); left += 1 + good.size() / 40) {
    folder.write("d/a" + extension, good.substr(0, left));
    expect_contains(error_of(ErrorKind::BadData, [&] { read({nhwc(16, 24)}); }), {"a" + extension});
  }
}

INSTANTIATE_TEST_SUITE_P(All, Formats, ::testing::Values(".jpg", ".png", ".bmp", ".webp", ".ppm"),
                         [](const auto& it) { return std::string(it.param).substr(1); });

TEST_F(Images, HostileSizesAreRefusedBeforeDecoding) {
  std::string bmp = encoded(".bmp");
  bmp.replace(18, 8, std::string("\xFF\xFF\x00\x00\xFF\xFF\x00\x00", 8));
  folder.write("d/a.bmp", bmp);
  expect_contains(error_of(ErrorKind::BadData, [&] { read({nhwc(16, 24)}); }),
                  {"a.bmp", "65535x65535"});
  folder.write("d/a.bmp", "P6 99999999999999999999 1 255 ");
  expect_contains(error_of(ErrorKind::BadData, [&] { read({nhwc(16, 24)}); }), {"a.bmp"});
  folder.write("d/a.bmp", "<html>");
  expect_contains(error_of(ErrorKind::BadData, [&] { read({nhwc(16, 24)}); }), {"not an image"});
  // A strip that would grow beyond all bounds with its shorter side.
  folder.write("d/a.bmp", ppm(60000, 1, pattern));
  options.image.resize_shorter = 60000;
  expect_contains(error_of(ErrorKind::BadData, [&] { read({nhwc(16, 24)}); }), {"too large"});
}

TEST_F(Images, GrayFilesFeedThreeChannels) {
  folder.write("d/a.pgm", "P5 2 1 255\n\x05\x06");
  EXPECT_EQ(read({nhwc(1, 2)}), (std::vector<float>{5, 5, 5, 6, 6, 6}));
}

TEST_F(Images, KindImageTakesAnyName) {
  folder.write("d/0001", ppm(1, 1, pattern));
  options.kind = DataKind::Image;
  EXPECT_EQ(read({nhwc(1, 1)}), (std::vector<float>{0, 40, 80}));
}

}  // namespace
}  // namespace quench
