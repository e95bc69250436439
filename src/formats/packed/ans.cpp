// SPDX-License-Identifier: Apache-2.0
// The entropy coder itself. Four states take turns, so that a processor works on four at once.
#include "formats/packed/ans.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace quench::packed {
namespace {

constexpr std::size_t kStates = 4;
/// States stay in [2^16, 2^32); 16 bits at a time leave and enter.
constexpr std::uint32_t kLowest = std::uint32_t{1} << 16;
using States = std::array<std::uint32_t, kStates>;

/// Symbols go in last first, so that they come out first to last.
class Packer {
 public:
  explicit Packer(std::size_t count) { words_.reserve(count / 2 + 16); }

  void put(std::size_t turn, const AnsTable& table, std::size_t symbol) {
    const AnsTable::Row row = table.row(symbol);
    std::uint32_t& state = states_[turn];
    const auto limit = static_cast<std::uint64_t>(row.frequency) << (32 - table.scale_bits());
    if (state >= limit) {
      words_.push_back(static_cast<std::uint16_t>(state));
      state >>= 16;
    }
    state = ((state / row.frequency) << table.scale_bits()) + state % row.frequency + row.start;
  }

  /// The states, then the words in the order in which they are read.
  void finish(ByteWriter& out) {
    for (const std::uint32_t state : states_) out.u32(state);
    std::ranges::reverse(words_);
    out.bytes(std::as_bytes(std::span(words_)));
  }

 private:
  States states_{kLowest, kLowest, kLowest, kLowest};
  std::vector<std::uint16_t> words_;
};

class Unpacker {
 public:
  Unpacker(const States& states, Bytes words) : states_(states), words_(words) {}

  std::uint8_t get(std::size_t turn, const AnsTable& table) {
    std::uint32_t& state = states_[turn];
    const std::uint32_t slot = state & ((std::uint32_t{1} << table.scale_bits()) - 1);
    const std::uint8_t symbol = table.symbol_at(slot);
    const AnsTable::Row row = table.row(symbol);
    state = row.frequency * (state >> table.scale_bits()) + slot - row.start;
    if (state < kLowest) state = (state << 16) | word();
    return symbol;
  }

  /// A stream that was not changed ends where it began.
  bool at_end() const noexcept {
    return at_ == words_.size() &&
           std::ranges::all_of(states_, [](std::uint32_t state) { return state == kLowest; });
  }

 private:
  std::uint32_t word() {
    if (at_ + 2 > words_.size()) fail_damaged("a chunk ends too early");
    std::uint16_t word = 0;
    std::memcpy(&word, words_.data() + at_, sizeof(word));
    at_ += 2;
    return word;
  }

  States states_;
  Bytes words_;
  std::size_t at_ = 0;
};

std::string pack_low_bits(std::span<const Symbol> symbols, Symbol base, int bits) {
  BitWriter out;
  const auto mask = (std::uint32_t{1} << bits) - 1;
  for (const Symbol symbol : symbols) {
    out.put(static_cast<std::uint32_t>(symbol - base) & mask, bits);
  }
  return out.take();
}

std::vector<std::uint8_t> classes_of(const Rows& rows, std::uint64_t begin, std::size_t count) {
  std::vector<std::uint8_t> classes(count);
  rows.fill(begin, classes);
  return classes;
}

}  // namespace

void Rows::fill(std::uint64_t begin, std::span<std::uint8_t> out) const {
  std::uint64_t row = begin / inner % classes.size();
  std::uint64_t left = inner - begin % inner;
  std::size_t at = 0;
  while (at < out.size()) {
    const auto run = static_cast<std::size_t>(std::min<std::uint64_t>(left, out.size() - at));
    std::memset(out.data() + at, classes[static_cast<std::size_t>(row)], run);
    at += run;
    left = inner;
    row = row + 1 == classes.size() ? 0 : row + 1;
  }
}

std::string Ans::params() const {
  ByteWriter out;
  out.varint(model_.base);
  out.u8(static_cast<std::uint8_t>(model_.shift));
  out.u8(static_cast<std::uint8_t>(model_.tables.size()));
  out.u8(static_cast<std::uint8_t>(model_.tables[0].scale_bits()));
  BitWriter bits;
  if (model_.tables.size() > 1) {
    out.varint(model_.rows.inner);
    out.varint(model_.rows.classes.size());
    const int width = bits_below(model_.tables.size());
    for (const std::uint8_t each : model_.rows.classes) bits.put(each, width);
  }
  for (const AnsTable& table : model_.tables) table.write(bits);
  const std::string packed = bits.take();
  out.varint(packed.size());
  out.bytes(view(packed));
  return out.take();
}

std::string Ans::encode(std::span<const Symbol> symbols, std::uint64_t begin) const {
  const auto classes = classes_of(model_.rows, begin, symbols.size());
  Packer packer(symbols.size());
  for (std::size_t i = symbols.size(); i-- > 0;) {
    const auto value = static_cast<std::size_t>((symbols[i] - model_.base) >> model_.shift);
    packer.put(i % kStates, model_.tables[classes[i]], value);
  }
  ByteWriter out;
  packer.finish(out);
  out.bytes(view(pack_low_bits(symbols, model_.base, model_.shift)));
  return out.take();
}

void Ans::decode(Bytes chunk, std::uint64_t begin, std::span<Symbol> symbols) const {
  const std::uint64_t low_bytes = bit_bytes(symbols.size(), model_.shift);
  ByteReader in(chunk);
  States states{};
  for (std::uint32_t& state : states) state = in.u32();
  if (in.left() < low_bytes) fail_damaged("a chunk ends too early");
  Unpacker unpacker(states, in.bytes(in.left() - low_bytes));
  BitReader low(in.bytes(low_bytes));
  const auto classes = classes_of(model_.rows, begin, symbols.size());
  const std::uint32_t limit = std::uint32_t{1} << stream_.bits;
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    const std::uint32_t high = unpacker.get(i % kStates, model_.tables[classes[i]]);
    const std::uint32_t value = model_.base + (high << model_.shift | low.get(model_.shift));
    if (value >= limit) fail_damaged("a value is out of range");
    symbols[i] = static_cast<Symbol>(value);
  }
  if (!unpacker.at_end()) fail_damaged("a chunk does not end where it should");
}

namespace {

Rows read_rows(ByteReader& params, std::uint64_t& num_rows) {
  Rows rows;
  rows.inner = params.varint();
  num_rows = params.varint(kMaxRows, "the number of rows");
  if (rows.inner == 0 || num_rows == 0) fail_damaged("a row is empty");
  return rows;
}

std::unique_ptr<Coder> read_ans(ByteReader& params, const StreamInfo& stream) {
  AnsModel model;
  model.base = static_cast<Symbol>(params.varint((std::uint64_t{1} << stream.bits) - 1, "a base"));
  model.shift = params.u8();
  const std::size_t num_classes = params.u8();
  const int scale_bits = params.u8();
  if (model.shift > stream.bits || num_classes == 0 || num_classes > kMaxClasses ||
      scale_bits < kMinScaleBits || scale_bits > kMaxScaleBits) {
    fail_damaged("an entropy coder has impossible settings");
  }
  std::uint64_t num_rows = 0;
  if (num_classes > 1) model.rows = read_rows(params, num_rows);
  BitReader bits(params.bytes(params.varint()));
  if (num_classes > 1) model.rows.classes.clear();
  for (std::uint64_t i = 0; i < num_rows; ++i) {
    const std::uint32_t each = bits.get(bits_below(num_classes));
    if (each >= num_classes) fail_damaged("a row has a class that does not exist");
    model.rows.classes.push_back(static_cast<std::uint8_t>(each));
  }
  for (std::size_t i = 0; i < num_classes; ++i) {
    model.tables.push_back(AnsTable::read(bits, scale_bits));
  }
  return std::make_unique<Ans>(stream, std::move(model), 0);
}

}  // namespace

CodingInfo ans_coding() { return {.name = "ans", .plan = plan_ans, .read = read_ans}; }

}  // namespace quench::packed
