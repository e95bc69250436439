// SPDX-License-Identifier: Apache-2.0
// Packs weights for tiles, splits products into tiles and shares them between threads.
#include "exec/engine/int8/product.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/file.h"
#include "exec/engine/int8/bytes.h"
#include "exec/engine/int8/tile.h"

namespace quench::exec {
namespace {

constexpr int kMaxTileSums = 24 * 16;
/// Real results beyond so many are not in a core's cache any more.
constexpr std::int64_t kFetched = 1 << 18;
/// Rows may be put together by copies of whole registers.
constexpr std::int64_t kScratchSlack = 64;

std::int64_t rounded_up(std::int64_t count, std::int64_t unit) {
  return (count + unit - 1) / unit * unit;
}

/// The columns of a panel, group by group.
struct Packer {
  const std::int8_t* data;
  std::int64_t columns;
  std::int64_t stride;
  const std::int64_t* places;
  RowForm form;

  void operator()(const PackedColumns::Panel& panel, std::int8_t* dst) const {
    const std::int64_t first = kTileColumns * panel.first;
    const std::int64_t count = kTileColumns * panel.width;
    for (std::int64_t run = 0; run < form.runs; ++run) {
      for (std::int64_t at = 0; at < form.padded(); at += kTileDepth) {
        const std::int64_t there = std::min(kTileDepth, form.length - at);
        pack_group(places + run * form.length + at, there, first, std::min(count, columns - first),
                   dst);
        dst += kTileDepth * count;
      }
    }
  }

 private:
  void pack_group(const std::int64_t* at, std::int64_t there, std::int64_t first,
                  std::int64_t count, std::int8_t* dst) const {
    if (stride == 1 && there == kTileDepth) return interleave(at, first, count, dst);
    for (std::int64_t i = 0; i < there; ++i) {
      const std::int8_t* from = data + first * stride + at[i];
      for (std::int64_t n = 0; n < count; ++n) dst[kTileDepth * n + i] = from[n * stride];
    }
  }

  /// Columns that lie side by side, four rows at once: compilers make vectors of this.
  void interleave(const std::int64_t* at, std::int64_t first, std::int64_t count,
                  std::int8_t* dst) const {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(data) + first;
    const std::uint8_t* a = bytes + at[0];
    const std::uint8_t* b = bytes + at[1];
    const std::uint8_t* c = bytes + at[2];
    const std::uint8_t* d = bytes + at[3];
    std::uint32_t words[kMaxTileWidth * kTileColumns];
    for (std::int64_t n = 0; n < count; ++n) {
      words[n] = a[n] | static_cast<std::uint32_t>(b[n]) << 8U |
                 static_cast<std::uint32_t>(c[n]) << 16U | static_cast<std::uint32_t>(d[n]) << 24U;
    }
    std::memcpy(dst, words, static_cast<std::size_t>(kTileDepth * count));
  }
};

/// What one thread does: some of the rows and some of the panels.
struct Share {
  std::int64_t first_row, rows;
  std::size_t first_panel, last_panel;
};

class Worker {
 public:
  Worker(const PackedColumns& columns, const Finish& finish, const ProductRows& rows)
      : columns_(columns),
        finish_(finish),
        rows_(rows),
        fetches_(finish.floats && rows.count * columns.columns() > kFetched) {}

  void operator()(const Share& share) const {
    const RowForm form = columns_.form();
    const std::int64_t block = rows_a_block(form);
    thread_local std::vector<const std::uint8_t*> pieces;
    thread_local std::vector<std::uint8_t> scratch;
    // They only grow: what a vector grows by is filled.
    const auto needed = static_cast<std::size_t>(form.runs * block);
    const auto bytes = needed * static_cast<std::size_t>(form.padded()) + kScratchSlack;
    if (pieces.size() < needed) pieces.resize(needed);
    if (scratch.size() < bytes) scratch.resize(bytes);
    const std::int64_t stop = share.first_row + share.rows;
    for (std::int64_t first = share.first_row; first < stop; first += block) {
      const std::int64_t count = std::min(block, stop - first);
      rows_.pieces(first, count, pieces.data(), scratch.data());
      // The last panel may have up to fifteen columns less than its registers. What is stored too
      // much goes to the next row, which comes later, as do the panels before.
      const bool spills = columns_.columns() >= kTileColumns &&
                          share.last_panel - share.first_panel == columns_.panels().size();
      for (std::size_t i = share.last_panel; i-- > share.first_panel;) {
        multiply(columns_.panels()[i], pieces.data(), {first, count, spills});
      }
    }
  }

 private:
  /// Rows that stay in the cache while all panels pass by.
  static std::int64_t rows_a_block(RowForm form) {
    constexpr std::int64_t kCache = 384 << 10;
    constexpr std::int64_t kUnit = 24;
    const std::int64_t fit = kCache / (form.runs * form.padded());
    return std::clamp<std::int64_t>(fit / kUnit * kUnit, kUnit, 8 * kUnit);
  }

  struct Block {
    std::int64_t first, count;
    bool spills;  ///< rows may be stored beyond their end, but for the last
  };

  void multiply(const PackedColumns::Panel& panel, const std::uint8_t* const* pieces,
                Block block) const {
    const RowForm form = columns_.form();
    const std::int64_t count = block.count;
    Tile tile{.pieces = pieces,
              .stride = count,
              .runs = form.runs,
              .groups = form.groups(),
              .weights = panel.weights,
              .start = rows_.start + kTileColumns * panel.first};
    // Tiles of nearly the same height: `high` of them have one row more.
    const std::int64_t tiles = (count + tile_rows(panel.width) - 1) / tile_rows(panel.width);
    const int rows = static_cast<int>(count / tiles);
    const std::int64_t high = count % tiles;
    std::int64_t done = 0;
    const auto next = [&](std::int64_t several, int height, bool spills) {
      if (several == 0) return;
      multiply(tile, panel,
               {.first = block.first + done, .tiles = several, .rows = height, .spills = spills});
      done += several * height;
      tile.pieces += several * height;
    };
    next(high, rows + 1, block.spills);
    next(tiles - high - 1, rows, block.spills);
    next(1, rows, false);
  }

  struct Tiles {
    std::int64_t first;  ///< row
    std::int64_t tiles;
    int rows;  ///< of each
    bool spills;
  };

  void multiply(Tile& tile, const PackedColumns::Panel& panel, Tiles tiles) const {
    const std::int64_t column = kTileColumns * panel.first;
    const std::int64_t stride = columns_.columns();
    const std::int64_t left =
        tiles.spills && !finish_.floats ? kTileColumns * panel.width : stride - column;
    if (finish_.plain()) {
      sum_tiles(tile,
                {.finish = &finish_,
                 .column = column,
                 .columns = left,
                 .stride = stride,
                 .dst = static_cast<std::uint8_t*>(rows_.dst) + tiles.first * stride + column,
                 .tiles = tiles.tiles},
                panel.width, tiles.rows, rows_.flip);
      return;
    }
    alignas(64) std::int32_t sums[kMaxTileSums];
    const std::int64_t size = finish_.floats ? sizeof(float) : 1;
    tile.sums = sums;
    FinishedTile finished{.sums = sums,
                          .width = panel.width,
                          .rows = tiles.rows,
                          .column = column,
                          .columns = left,
                          .stride = stride};
    const std::uint8_t* const* pieces = tile.pieces;
    for (std::int64_t i = 0; i < tiles.tiles; ++i) {
      const std::int64_t first = tiles.first + i * tiles.rows;
      const std::int64_t offset = (first * stride + column) * size;
      if (fetches_) fetch(offset, panel.width, tiles.rows);
      sum_tile(tile, panel.width, tiles.rows, rows_.flip);
      if (rows_.factors != nullptr) finished.factors = rows_.factors + first;
      finished.dst = static_cast<std::uint8_t*>(rows_.dst) + offset;
      if (rows_.residual != nullptr) {
        finished.residual = static_cast<const std::uint8_t*>(rows_.residual) + offset;
      }
      finish_tile(finish_, finished);
      tile.pieces += tiles.rows;
    }
    tile.pieces = pieces;
  }

  /// Where a tile's results go, and what is added to them: they arrive while it is summed up.
  void fetch(std::int64_t offset, std::int64_t width, std::int64_t rows) const {
    constexpr std::int64_t kLine = 64;
    const std::int64_t stride = columns_.columns() * static_cast<std::int64_t>(sizeof(float));
    for (const void* start : {static_cast<const void*>(rows_.dst), rows_.residual}) {
      if (start == nullptr) continue;
      const auto* row = static_cast<const std::uint8_t*>(start) + offset;
      for (std::int64_t i = 0; i < rows; ++i, row += stride) {
        for (std::int64_t n = 0; n < width; ++n) __builtin_prefetch(row + n * kLine, 1);
      }
    }
  }

  const PackedColumns& columns_;
  const Finish& finish_;
  const ProductRows& rows_;
  bool fetches_;  ///< float results, more than stay in a core's cache
};

/// How much longer the longest of equal shares takes than an even one.
double imbalance(std::int64_t units, std::int64_t threads) {
  const auto longest = static_cast<double>((units + threads - 1) / threads);
  return longest * static_cast<double>(threads) / static_cast<double>(units);
}

/// Whether threads share the columns: large weights are then read once.
bool shares_columns(const PackedColumns& columns, std::int64_t rows, std::int64_t threads) {
  constexpr std::int64_t kLarge = 512 << 10;
  constexpr std::int64_t kRowsATile = 6;
  const RowForm form = columns.form();
  const double by_rows = imbalance(rounded_up(rows, kRowsATile) / kRowsATile, threads);
  const double by_columns = imbalance(std::ssize(columns.panels()), threads);
  const bool large = form.runs * form.padded() * columns.columns() > kLarge;
  constexpr double kWorth = 1.05;
  return large ? by_columns <= by_rows * kWorth : by_columns * kWorth < by_rows;
}

/// The time a product takes, in multiplications.
std::int64_t effort(const PackedColumns& columns, std::int64_t rows) {
  constexpr std::int64_t kFinishing = 16;
  const RowForm form = columns.form();
  return rows * columns.columns() * (form.runs * form.padded() + kFinishing);
}

bool is_known(const Fusion& fusion, bool floats) {
  const std::string& name = fusion.activation;
  return name.empty() || name == "relu" || name == "clip" || name == "leaky_relu" ||
         (floats && name == "gelu");
}

AddedBytes added_bytes(const ByteParams& params, float step) {
  return {.scale = params.scale / step,
          .shift = params.flipped_zero(),
          .flip = repeated(params.flip())};
}

ByteStore store_of(const ByteParams& params, const Fusion& fusion) {
  return clamped_store(params, fusion.activation, fusion.alpha, fusion.beta);
}

/// What rounds to bytes; `params` are those of the first rounding.
void set_bytes(Finish& finish, const IntegerTail& tail, const ByteParams& params) {
  const ByteStore store = store_of(params, tail.fusion);
  finish.out = BytePattern(store);
  if (!tail.residual) return;
  finish.add = tail.middle ? AddBytes::Twice : AddBytes::Once;
  finish.residual = added_bytes(*tail.residual, tail.out->scale);
  if (!tail.middle) return;
  ByteStore last = store_of(*tail.out, tail.sum);
  last.zero = 0;
  finish.out = BytePattern(last);
  finish.middle = {.low = store.low - store.zero,
                   .high = store.high - store.zero,
                   .zero = store.zero,
                   .sum = tail.residual_first ? byte_sum(*tail.residual, params, *tail.out)
                                              : byte_sum(params, *tail.residual, *tail.out),
                   .residual_first = tail.residual_first};
}

void set_activation(Finish& finish, const Fusion& fusion) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  finish.least = fusion.activation == "relu" ? 0.0F : -kInfinity;
  finish.most = kInfinity;
  if (fusion.activation == "clip") {
    finish.least = fusion.alpha;
    finish.most = fusion.beta;
  }
  if (fusion.activation == "leaky_relu") finish.slope = fusion.alpha;
  finish.gelu = fusion.activation == "gelu";
}

}  // namespace

PackedColumns::PackedColumns(const std::int8_t* data, std::int64_t columns, std::int64_t stride,
                             const std::vector<std::int64_t>& places, RowForm form)
    : columns_(columns), form_(form) {
  const std::int64_t units = whole_lanes(columns) / kTileColumns;
  const std::int64_t count = (units + kMaxTileWidth - 1) / kMaxTileWidth;
  const std::int64_t unit_size = form.runs * form.padded() * kTileColumns;
  packed_ = at::empty({units * unit_size}, at::kChar);
  const bool partial = form.padded() != form.length || units * kTileColumns != columns;
  if (partial) packed_.zero_();
  auto* packed = packed_.data_ptr<std::int8_t>();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t first = i * units / count;
    panels_.push_back({.first = first,
                       .width = static_cast<int>((i + 1) * units / count - first),
                       .weights = packed + first * unit_size});
  }
  const Packer packer{data, columns, stride, places.data(), form};
  // Less is packed sooner than a second thread starts.
  constexpr std::int64_t kGrain = 1 << 20;
  const std::int64_t grain = std::max<std::int64_t>(kGrain / (kMaxTileWidth * unit_size), 1);
  share(0, count, grain, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) {
      const Panel& panel = panels_[static_cast<std::size_t>(i)];
      packer(panel, packed + panel.first * unit_size);
    }
  });
}

void multiply_rows(const PackedColumns& columns, const Finish& finish, const ProductRows& rows) {
  const Worker work(columns, finish, rows);
  const auto panels = columns.panels().size();
  constexpr std::int64_t kWorth = 1 << 18;  // for each thread
  const std::int64_t all = effort(columns, rows.count);
  if (all < kWorth / 2) return work({0, rows.count, 0, panels});
  const std::int64_t threads = pool_threads();
  const std::int64_t grain = std::max<std::int64_t>(kWorth * threads / all, 1);
  const bool by_columns = shares_columns(columns, rows.count, threads);
  share(0, threads, grain, [&](std::int64_t begin, std::int64_t end) {
    const auto part = [&](std::int64_t whole) {
      return std::pair(begin * whole / threads, end * whole / threads);
    };
    if (by_columns) {
      const auto own = part(static_cast<std::int64_t>(panels));
      work({0, rows.count, static_cast<std::size_t>(own.first),
            static_cast<std::size_t>(own.second)});
    } else {
      const auto own = part(rows.count);
      work({own.first, own.second - own.first, 0, panels});
    }
  });
}

PiecesFunction plain_rows(const std::uint8_t* src, std::int64_t rows, RowForm form) {
  return [=](std::int64_t first, std::int64_t count, const std::uint8_t** pieces,
             std::uint8_t* scratch) {
    // Whole registers of four bytes are read: the last rows may have to be put where they can be.
    const std::int64_t over = form.padded() - form.length;
    const std::int64_t safe =
        over == 0 ? rows : std::max(rows - (over + form.length - 1) / form.length, std::int64_t{0});
    const std::uint8_t* row = src + first * form.length;
    const std::int64_t direct = std::clamp<std::int64_t>(safe - first, 0, count);
    for (std::int64_t i = 0; i < direct; ++i) pieces[i] = row + i * form.length;
    for (std::int64_t i = direct; i < count; ++i) {
      std::memcpy(scratch, row + i * form.length, static_cast<std::size_t>(form.length));
      pieces[i] = scratch;
      scratch += form.padded();
    }
  };
}

PackedColumns pack_matrix(const at::Tensor& weights, bool transposed) {
  const std::int64_t depth = weights.size(transposed ? 1 : 0);
  const std::int64_t width = weights.size(transposed ? 0 : 1);
  std::vector<std::int64_t> places(static_cast<std::size_t>(depth));
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i] = static_cast<std::int64_t>(i) * (transposed ? 1 : width);
  }
  PackedColumns columns(weights.data_ptr<std::int8_t>(), width, transposed ? depth : 1, places,
                        {.runs = 1, .length = depth});
  release_pages({static_cast<const std::byte*>(weights.data_ptr()), weights.nbytes()});
  return columns;
}

std::optional<LayerNumbers> layer_numbers(const ByteParams& source, const IntegerTail& tail,
                                          const SignedWeights& weights, const at::Tensor& bias) {
  constexpr std::int64_t kMaxDepth = 1 << 15;  // sums stay below 2^30
  const auto channels = static_cast<std::int64_t>(weights.sums.size());
  const std::int64_t depth = channels == 0 ? 0 : weights.data.numel() / channels;
  if (!can_sum_tiles() || weights.zero != 0 || depth == 0 || depth > kMaxDepth ||
      !is_known(tail.fusion, !tail.out) || (!tail.out && tail.residual)) {
    return std::nullopt;
  }
  LayerNumbers numbers;
  Finish& finish = numbers.finish;
  finish.floats = !tail.out;
  // Sums are first divided by the scale with which they are rounded first.
  const std::optional<ByteParams>& params = tail.middle ? tail.middle : tail.out;
  const float step = params ? params->scale : 1.0F;
  set_activation(finish, tail.fusion);
  if (params) set_bytes(finish, tail, *params);
  const at::Tensor wide = bias.defined()
                              ? bias.to(at::kDouble).reshape(-1).expand({channels}).contiguous()
                              : at::zeros({channels}, at::kDouble);
  const bool whole = !bias.defined() || bias.scalar_type() == at::kInt;
  const auto lanes = static_cast<std::size_t>(whole_lanes(channels));
  finish.scales.resize(lanes);
  finish.shifts.resize(lanes);
  numbers.start.resize(lanes);
  const auto zero = static_cast<std::int64_t>(source.flipped_zero());
  for (std::size_t c = 0; c < weights.sums.size(); ++c) {
    const double given = wide.data_ptr<double>()[c];
    const std::int64_t start =
        (whole ? static_cast<std::int64_t>(given) : 0) - zero * weights.sums[c];
    constexpr std::int64_t kMost = 1 << 30;
    if (std::abs(start) > kMost) return std::nullopt;
    numbers.start[c] = static_cast<std::int32_t>(start);
    finish.scales[c] = tail.sum_scales[tail.sum_scales.size() == 1 ? 0 : c] / step;
    if (!whole) finish.shifts[c] = static_cast<float>(given / static_cast<double>(step));
    // Conversions to whole numbers have no room for more.
    constexpr double kMaxProduct = 255.0 * 128.0;
    const double sum =
        std::abs(static_cast<double>(start)) + kMaxProduct * static_cast<double>(depth);
    const double most = static_cast<double>(finish.scales[c]) * sum + std::abs(given / step) +
                        256.0 * static_cast<double>(finish.residual.scale + finish.middle.most());
    if (tail.out && !(most < static_cast<double>(kMost))) return std::nullopt;
  }
  finish.bare = finish.plain() && finish.out.bare() &&
                std::ranges::all_of(finish.shifts, [](float each) { return each == 0; });
  return numbers;
}

}  // namespace quench::exec
