// SPDX-License-Identifier: Apache-2.0
// TfIdfVectorizer over token numbers.
#include <algorithm>
#include <map>

#include "exec/engine/kernels/common.h"

namespace quench::exec {
namespace {

enum class Weighting { Count, Weight, Both };

struct Vocabulary {
  std::map<Ints, std::size_t> grams;  ///< to the place in `columns`
  Ints columns;
  std::vector<float> weights;
  std::int64_t shortest = 1, longest = 1, most_skipped = 0, width = 0;
  Weighting weighting = Weighting::Count;
};

/// The pool holds all 1-grams, then all 2-grams and so on; `starts` says where each length begins.
bool read_grams(const Ints& pool, const Ints& starts, Vocabulary& words) {
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto length = static_cast<std::int64_t>(i) + 1;
    const auto size = static_cast<std::int64_t>(pool.size());
    const std::int64_t end = i + 1 < starts.size() ? starts[i + 1] : size;
    if (starts[i] < 0 || end > size) return false;
    for (std::int64_t at = starts[i]; at + length <= end; at += length) {
      words.grams.try_emplace(Ints(pool.begin() + at, pool.begin() + at + length),
                              words.grams.size());
    }
  }
  return words.grams.size() <= words.columns.size();
}

std::vector<float> count_grams(const std::int64_t* tokens, std::int64_t count,
                               const Vocabulary& words) {
  std::vector<float> found(static_cast<std::size_t>(words.width), 0);
  for (std::int64_t n = words.shortest; n <= words.longest; ++n) {
    // A gram of one token has nothing to skip.
    const std::int64_t steps = n == 1 ? 1 : std::min(words.most_skipped, count) + 1;
    for (std::int64_t step = 1; step <= steps; ++step) {
      for (std::int64_t at = 0; at + (n - 1) * step < count; ++at) {
        Ints gram;
        for (std::int64_t i = 0; i < n; ++i) gram.push_back(tokens[at + i * step]);
        const auto known = words.grams.find(gram);
        if (known == words.grams.end()) continue;
        const auto column = static_cast<std::size_t>(words.columns[known->second]);
        const float weight = words.weights.empty() ? 1.0F : words.weights[known->second];
        switch (words.weighting) {
          case Weighting::Count:
            found[column] += 1;
            break;
          case Weighting::Weight:
            found[column] = weight;
            break;
          case Weighting::Both:
            found[column] += weight;
            break;
        }
      }
    }
  }
  return found;
}

Kernel make_tf_idf(const OpContext& context) {
  const Node& node = context.node;
  const std::string mode = node.get_string("mode", "");
  if (node.find("pool_strings") != nullptr) return refuse("tokens that are strings");
  Vocabulary words{.columns = node.get_ints("ngram_indexes"),
                   .shortest = node.get_int("min_gram_length", 1),
                   .longest = node.get_int("max_gram_length", 1),
                   .most_skipped = node.get_int("max_skip_count", 0)};
  const Ints starts = node.get_ints("ngram_counts");
  words.shortest = std::max<std::int64_t>(words.shortest, 1);
  words.longest = std::min(words.longest, static_cast<std::int64_t>(starts.size()));
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") return refuse("mode '{}'", mode);
  words.weighting = mode == "TF"    ? Weighting::Count
                    : mode == "IDF" ? Weighting::Weight
                                    : Weighting::Both;
  if (const auto* weights = node.get<std::vector<float>>("weights")) words.weights = *weights;
  constexpr std::int64_t kMaxWidth = std::int64_t{1} << 28;
  for (const std::int64_t column : words.columns) {
    if (column < 0 || column >= kMaxWidth) return refuse("ngram_indexes has {}", column);
    words.width = std::max(words.width, column + 1);
  }
  if (!read_grams(node.get_ints("pool_int64s"), starts, words) ||
      (!words.weights.empty() && words.weights.size() < words.grams.size())) {
    return refuse("ngram_counts, ngram_indexes, weights and the pool do not fit");
  }
  return map_input([words](const at::Tensor& given) {
    const at::Tensor tokens = given.to(at::kLong).contiguous();
    const std::int64_t rows = tokens.dim() == 2 ? tokens.size(0) : 1;
    const std::int64_t count = rows == 0 ? 0 : tokens.numel() / rows;
    at::Tensor result = at::zeros({rows, words.width}, at::kFloat);
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto found = count_grams(tokens.data_ptr<std::int64_t>() + row * count, count, words);
      std::ranges::copy(found, result.data_ptr<float>() + row * words.width);
    }
    return tokens.dim() == 2 ? result : result.squeeze(0);
  });
}

}  // namespace

KernelInfo kernel_TfIdfVectorizer() { return {.since = 9, .make = make_tf_idf}; }

}  // namespace quench::exec
