// SPDX-License-Identifier: Apache-2.0
// The file form of statistics: a header, the entries, a checksum. Little endian. Between ranks the
// entries go alone, with counts in as few bytes as they take.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/file.h"
#include "base/format.h"
#include "observe/bins.h"
#include "observe/statistics_bytes.h"

namespace quench {
namespace {

static_assert(std::endian::native == std::endian::little, "the file form is little endian");

constexpr std::string_view kMagic = "QNCHSTAT";
constexpr std::uint32_t kVersion = 1;

/// FNV-1a, which finds damage; it does not defend against forgery.
std::uint64_t checksum(std::span<const std::byte> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::byte byte : bytes) {
    hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3;
  }
  return hash;
}

class Writer {
 public:
  template <typename T>
  void put(const T& value) {
    put_bytes(std::as_bytes(std::span(&value, 1)));
  }
  template <typename T>
  void put_all(std::span<const T> values) {
    put(static_cast<std::uint64_t>(values.size()));
    put_bytes(std::as_bytes(values));
  }
  /// Numbers of 0 and more.
  void put_narrow(std::span<const std::int64_t> values) {
    const std::int64_t most = values.empty() ? 0 : std::ranges::max(values);
    put(static_cast<std::uint64_t>(values.size()));
    const auto put_as = [&]<typename T>(T) {
      put(static_cast<std::uint8_t>(sizeof(T)));
      std::vector<T> narrow(values.size());
      std::ranges::transform(values, narrow.begin(),
                             [](std::int64_t value) { return static_cast<T>(value); });
      put_bytes(std::as_bytes(std::span(narrow)));
    };
    if (most <= std::numeric_limits<std::uint16_t>::max()) return put_as(std::uint16_t{});
    if (most <= std::numeric_limits<std::uint32_t>::max()) return put_as(std::uint32_t{});
    put_as(std::int64_t{});
  }
  void put_text(std::string_view text) { put_all(std::span(text.data(), text.size())); }
  void put_bytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}
  template <typename T>
  T get() {
    T value{};
    const auto bytes = take(sizeof(T));
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }
  /// Sizes are bounded by the bytes that are left, before anything is made.
  template <typename T>
  std::vector<T> get_all() {
    const auto count = get<std::uint64_t>();
    if (count > rest_.size() / sizeof(T)) fail(ErrorKind::BadData, "it ends too early");
    const auto bytes = take(static_cast<std::size_t>(count) * sizeof(T));
    std::vector<T> values(static_cast<std::size_t>(count));
    if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  std::vector<std::int64_t> get_narrow() {
    const auto count = get<std::uint64_t>();
    const auto width = get<std::uint8_t>();
    std::vector<std::int64_t> values;
    const auto get_as = [&]<typename T>(T) {
      if (count > rest_.size() / sizeof(T)) fail(ErrorKind::BadData, "it ends too early");
      std::vector<T> narrow(static_cast<std::size_t>(count));
      const auto bytes = take(narrow.size() * sizeof(T));
      if (count > 0) std::memcpy(narrow.data(), bytes.data(), bytes.size());
      values.assign(narrow.begin(), narrow.end());
    };
    if (width == sizeof(std::uint16_t)) get_as(std::uint16_t{});
    if (width == sizeof(std::uint32_t)) get_as(std::uint32_t{});
    if (width == sizeof(std::int64_t)) get_as(std::int64_t{});
    return values;
  }
  std::string get_text() {
    const auto text = get_all<char>();
    return {text.begin(), text.end()};
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::span<const std::byte> take(std::size_t size) {
    if (size > rest_.size()) fail(ErrorKind::BadData, "it ends too early");
    const auto bytes = rest_.first(size);
    rest_ = rest_.subspan(size);
    return bytes;
  }
  std::span<const std::byte> rest_;
};

/// Who reads it.
enum class Form { File, Message };

void write_statistic(Writer& writer, const Statistic& statistic, Form form) {
  for (const std::int64_t number :
       {statistic.samples, statistic.count, statistic.nans, statistic.infinities, statistic.zeros,
        statistic.observed, statistic.first_bin}) {
    writer.put(number);
  }
  writer.put(statistic.min);
  writer.put(statistic.max);
  for (const ExactSum* sum : {&statistic.sum, &statistic.sum_squares, &statistic.sum_abs_max,
                              &statistic.sum_low, &statistic.sum_high}) {
    writer.put(sum->limbs());
  }
  writer.put(static_cast<std::uint64_t>(statistic.moving_abs_max.entries().size()));
  for (const auto& [order, value] : statistic.moving_abs_max.entries()) {
    writer.put(order);
    writer.put(value);
  }
  if (form == Form::File) {
    writer.put_all(std::span(statistic.bins));
  } else {
    writer.put_narrow(statistic.bins);
  }
}

void write_entries(Writer& writer, const StatisticMap& statistics, Form form) {
  writer.put(static_cast<std::uint64_t>(statistics.size()));
  for (const auto& [name, statistic] : statistics) {
    writer.put_text(name);
    write_statistic(writer, statistic, form);
  }
}

/// A forged file with a right checksum must not lead observers out of their arrays.
void check(const Statistic& statistic) {
  bool good = std::isfinite(statistic.min) && std::isfinite(statistic.max) &&
              std::fabs(statistic.min) < 1e39 && std::fabs(statistic.max) < 1e39 &&
              statistic.min <= statistic.max && statistic.count >= 0 && statistic.zeros >= 0 &&
              statistic.samples >= 0 && statistic.observed >= 0 &&
              statistic.observed <= statistic.samples;
  std::int64_t left = statistic.count;
  for (const std::int64_t count : statistic.bins) {
    good = good && count >= 0 && count <= left;
    if (good) left -= count;
  }
  good = good && left == 0 && statistic.zeros <= statistic.count;
  if (good && statistic.count > 0) {
    const auto range = observe::bin_range(statistic.min, statistic.max);
    good = range.first == statistic.first_bin &&
           range.count == static_cast<std::int64_t>(statistic.bins.size());
  } else {
    good = good && statistic.bins.empty();
  }
  if (!good) fail(ErrorKind::BadData, "its numbers contradict each other");
}

Statistic read_statistic(Reader& reader, Form form) {
  Statistic statistic;
  for (std::int64_t* number :
       {&statistic.samples, &statistic.count, &statistic.nans, &statistic.infinities,
        &statistic.zeros, &statistic.observed, &statistic.first_bin}) {
    *number = reader.get<std::int64_t>();
  }
  statistic.min = reader.get<double>();
  statistic.max = reader.get<double>();
  for (ExactSum* sum : {&statistic.sum, &statistic.sum_squares, &statistic.sum_abs_max,
                        &statistic.sum_low, &statistic.sum_high}) {
    sum->set_limbs(reader.get<std::array<std::int64_t, ExactSum::kLimbs>>());
  }
  const auto recent = reader.get<std::uint64_t>();
  if (recent > MovingAverage::kKept) fail(ErrorKind::BadData, "its numbers contradict each other");
  for (std::uint64_t i = 0; i < recent; ++i) {
    const auto order = reader.get<std::int64_t>();
    const auto value = reader.get<float>();
    if (!(value >= 0 && static_cast<double>(value) <= statistic.abs_max())) {
      fail(ErrorKind::BadData, "its numbers contradict each other");
    }
    statistic.moving_abs_max.add({order, value});
  }
  statistic.bins = form == Form::File ? reader.get_all<std::int64_t>() : reader.get_narrow();
  check(statistic);
  if (statistic.count > 0) {
    statistic.bin_width = quant::canonical_width(statistic.min, statistic.max);
  }
  return statistic;
}

StatisticMap read_entries(Reader& reader, Form form) {
  StatisticMap statistics;
  const auto entries = reader.get<std::uint64_t>();
  for (std::uint64_t i = 0; i < entries; ++i) {
    std::string name = reader.get_text();
    if (!statistics.emplace(std::move(name), read_statistic(reader, form)).second) {
      fail(ErrorKind::BadData, "a name occurs twice in it");
    }
  }
  if (!reader.at_end()) fail(ErrorKind::BadData, "it goes on behind its last entry");
  return statistics;
}

}  // namespace

std::vector<std::byte> observe::to_message(const StatisticMap& statistics) {
  Writer writer;
  write_entries(writer, statistics, Form::Message);
  return writer.take();
}

StatisticMap observe::from_message(std::span<const std::byte> message) {
  Reader reader(message);
  return read_entries(reader, Form::Message);
}

StatisticMap observe::from_bytes(std::span<const std::byte> file, std::string* settings) {
  if (file.size() < kMagic.size() + sizeof(kVersion) + sizeof(std::uint64_t) ||
      std::memcmp(file.data(), kMagic.data(), kMagic.size()) != 0) {
    fail(ErrorKind::BadData, "it is not a file of statistics; write one with 'quench calibrate'");
  }
  const auto body = file.first(file.size() - sizeof(std::uint64_t));
  Reader reader(body.subspan(kMagic.size()));
  const auto version = reader.get<std::uint32_t>();
  if (version != kVersion) {
    fail(ErrorKind::BadData,
         "it has version {} of the file form, this Quench reads version {}; calibrate again",
         version, kVersion);
  }
  if (Reader(file.subspan(body.size())).get<std::uint64_t>() != checksum(body)) {
    fail(ErrorKind::BadData, "its checksum is wrong: it is damaged or cut off; calibrate again");
  }
  std::string note = reader.get_text();
  StatisticMap statistics = read_entries(reader, Form::File);
  if (settings != nullptr) *settings = std::move(note);
  return statistics;
}

std::vector<std::byte> observe::to_bytes(const StatisticMap& statistics,
                                         std::string_view settings) {
  Writer writer;
  writer.put_bytes(std::as_bytes(std::span(kMagic.data(), kMagic.size())));
  writer.put(kVersion);
  writer.put_text(settings);
  write_entries(writer, statistics, Form::File);
  writer.put(checksum(writer.bytes()));
  return writer.take();
}

void save_statistics(const StatisticMap& statistics, const std::string& path,
                     std::string_view settings) {
  AtomicFile file(path);
  file.write(observe::to_bytes(statistics, settings));
  file.commit();
}

StatisticMap load_statistics(const std::string& path, std::string* settings) {
  const std::vector<std::byte> bytes = read_bytes(path);
  try {
    return observe::from_bytes(bytes, settings);
  } catch (Error& error) {
    throw error.in(path);
  }
}

}  // namespace quench
