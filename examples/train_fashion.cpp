// SPDX-License-Identifier: Apache-2.0
// Trains the example network on Fashion-MNIST and writes it as an ONNX model.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <numbers>
#include <numeric>
#include <random>
#include <stdexcept>

#include "fashion_data.h"
#include "fashion_net.h"

namespace {

using fashion::Images;
using fashion::kPixels;
using fashion::kSide;
using fashion::Net;

struct Options {
  std::string output;
  std::string data = "/usr/share/datasets/fashion-mnist";
  std::int64_t epochs = 10;
  std::int64_t limit = 0;
  std::int64_t seed = 1;
  int threads = 2;
};

constexpr const char* kUsage =
    "usage: train_fashion MODEL.onnx [--data FOLDER] [--epochs N] [--limit N] [--seed N]\n"
    "                     [--threads N]\n"
    "Trains a small network on Fashion-MNIST and writes it as MODEL.onnx.\n"
    "  --data FOLDER  the four .gz files of the set [/usr/share/datasets/fashion-mnist]\n"
    "  --epochs N     passes over the training images; 0 writes untrained weights [10]\n"
    "  --limit N      reads only the first N images of both sets; 0 reads all [0]\n";

constexpr std::int64_t kBatch = 128;
constexpr double kPeakRate = 0.15;
constexpr double kWarmup = 0.15;  // share of the steps in which the rate rises
constexpr int kMaxShift = 2;

Options parse(int argc, char** argv) {
  Options options;
  const std::map<std::string, std::function<void(const std::string&)>> flags = {
      {"--data", [&](const std::string& text) { options.data = text; }},
      {"--epochs", [&](const std::string& text) { options.epochs = std::stoll(text); }},
      {"--limit", [&](const std::string& text) { options.limit = std::stoll(text); }},
      {"--seed", [&](const std::string& text) { options.seed = std::stoll(text); }},
      {"--threads", [&](const std::string& text) { options.threads = std::stoi(text); }},
  };
  for (int index = 1; index < argc; ++index) {
    const std::string word = argv[index];
    const auto flag = flags.find(word);
    if (flag != flags.end() && index + 1 < argc) {
      flag->second(argv[++index]);
    } else if (options.output.empty() && !word.starts_with("-")) {
      options.output = word;
    } else {
      throw std::invalid_argument("'" + word + "' is not an option, or lacks its value");
    }
  }
  if (options.output.empty()) throw std::invalid_argument("no name for the model was given");
  return options;
}

/// Images `order[begin, begin + count)`, each moved by up to two pixels and perhaps mirrored.
torch::Tensor moved_batch(const Images& images, const std::vector<std::int64_t>& order,
                          std::int64_t begin, std::int64_t count, std::mt19937_64& random) {
  torch::Tensor batch = torch::empty({count, 1, kSide, kSide});
  std::uniform_int_distribution<int> shift(-kMaxShift, kMaxShift);
  std::bernoulli_distribution mirrored(0.5);
  for (std::int64_t row = 0; row < count; ++row) {
    const int down = shift(random);
    const int right = shift(random);
    copy_moved(images, order[static_cast<std::size_t>(begin + row)], down, right, mirrored(random),
               batch.data_ptr<float>() + row * kPixels);
  }
  return batch;
}

torch::Tensor labels_of(const Images& images, const std::vector<std::int64_t>& order,
                        std::int64_t begin, std::int64_t count) {
  torch::Tensor labels = torch::empty({count}, torch::kInt64);
  for (std::int64_t row = 0; row < count; ++row) {
    const std::int64_t index = order[static_cast<std::size_t>(begin + row)];
    labels.data_ptr<std::int64_t>()[row] = images.labels[static_cast<std::size_t>(index)];
  }
  return labels;
}

/// Rises along a line, then falls along a cosine to nothing; `done` in 0..1.
double learning_rate(double done) {
  if (done < kWarmup) return kPeakRate * (done / kWarmup);
  const double rest = (done - kWarmup) / (1 - kWarmup);
  return kPeakRate * 0.5 * (1 + std::cos(std::numbers::pi * rest));
}

/// Percent of the first `limit` images (0: all) whose class has the highest score.
double top1(Net& net, const Images& images, std::int64_t limit) {
  const torch::NoGradGuard no_grad;
  net->eval();
  const std::int64_t total = limit > 0 ? std::min(limit, images.size()) : images.size();
  std::int64_t right = 0;
  for (std::int64_t begin = 0; begin < total; begin += kBatch) {
    const std::int64_t count = std::min(kBatch, total - begin);
    const torch::Tensor batch = torch::from_blob(
        const_cast<float*>(images.pixels.data() + begin * kPixels), {count, 1, kSide, kSide});
    const torch::Tensor best = net->forward(batch).argmax(1);
    for (std::int64_t row = 0; row < count; ++row) {
      const auto index = static_cast<std::size_t>(begin + row);
      right += best.data_ptr<std::int64_t>()[row] == images.labels[index] ? 1 : 0;
    }
  }
  return 100.0 * static_cast<double>(right) / static_cast<double>(total);
}

class Trainer {
 public:
  Trainer(Net net, const Images& images, const Options& options)
      : net_(std::move(net)),
        images_(images),
        epochs_(options.epochs),
        random_(static_cast<std::uint64_t>(options.seed)),
        order_(static_cast<std::size_t>(images.size())),
        optimizer_(
            net_->parameters(),
            torch::optim::SGDOptions(kPeakRate).momentum(0.9).nesterov(true).weight_decay(5e-4)) {
    std::iota(order_.begin(), order_.end(), 0);
  }

  /// One pass over the images; returns the mean loss.
  double epoch() {
    net_->train();
    std::shuffle(order_.begin(), order_.end(), random_);
    const std::int64_t steps = (images_.size() + kBatch - 1) / kBatch;
    double loss_sum = 0;
    for (std::int64_t index = 0; index < steps; ++index) {
      const double done = static_cast<double>(step_++) / static_cast<double>(steps * epochs_);
      set_rate(learning_rate(done));
      loss_sum += step(index * kBatch);
    }
    return loss_sum / static_cast<double>(steps);
  }

 private:
  void set_rate(double rate) {
    for (auto& group : optimizer_.param_groups()) group.options().set_lr(rate);
  }

  double step(std::int64_t begin) {
    const std::int64_t count = std::min(kBatch, images_.size() - begin);
    const torch::Tensor batch = moved_batch(images_, order_, begin, count, random_);
    const torch::Tensor labels = labels_of(images_, order_, begin, count);
    optimizer_.zero_grad();
    const torch::Tensor loss = torch::cross_entropy_loss(net_->forward(batch), labels);
    loss.backward();
    optimizer_.step();
    return loss.item<double>();
  }

  Net net_;
  const Images& images_;
  std::int64_t epochs_;
  std::int64_t step_ = 0;
  std::mt19937_64 random_;
  std::vector<std::int64_t> order_;
  torch::optim::SGD optimizer_;
};

void run(const Options& options) {
  torch::set_num_threads(options.threads);
  torch::manual_seed(static_cast<std::uint64_t>(options.seed));
  const Images train = fashion::read_images(options.data, "train", options.limit);
  const Images test = fashion::read_images(options.data, "t10k", options.limit);
  Net net;
  Trainer trainer(net, train, options);
  for (std::int64_t epoch = 1; epoch <= options.epochs; ++epoch) {
    const auto start = std::chrono::steady_clock::now();
    const double loss = trainer.epoch();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf("epoch %2ld  loss %.4f  top-1 %.2f %%  %.1f s\n", static_cast<long>(epoch), loss,
                top1(net, test, 0), seconds.count());
    std::fflush(stdout);
  }
  net->eval();
  quench::save(fashion::to_model(net), options.output);
  std::printf("%s: top-1 %.2f %% of %ld test images, %.2f %% of the first 1000\n",
              options.output.c_str(), top1(net, test, 0), static_cast<long>(test.size()),
              top1(net, test, 1000));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  try {
    options = parse(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train_fashion: %s\n%s", error.what(), kUsage);
    return 2;
  }
  try {
    run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train_fashion: %s\n", error.what());
    return 3;
  }
  return 0;
}
