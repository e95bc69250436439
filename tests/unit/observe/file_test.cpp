// SPDX-License-Identifier: Apache-2.0
// The file form of statistics, whole and damaged.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "observe/statistics_bytes.h"
#include "quench/error.h"
#include "samples.h"

namespace quench {
namespace {

using testing::made_up;
using testing::statistic_of;

class StatisticsFile : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() /
             ("quench_stats_" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) +
              std::to_string(reinterpret_cast<std::uintptr_t>(this))))
                .string();
    statistics_["conv1"] = statistic_of({made_up(1, 20000), made_up(2, 500, 2)});
    statistics_["empty"] = Statistic();
    statistics_["zeros"] = statistic_of({{0, 0}});
    statistics_["unseen"] = statistic_of({{}, {std::nanf("")}});
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::string read() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void write(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }
  void expect_refused() const {
    try {
      load_statistics(path_);
      ADD_FAILURE() << "a damaged file was read";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::BadData);
      EXPECT_NE(std::string(error.what()).find(path_), std::string::npos) << error.what();
    }
  }

  std::string path_;
  StatisticMap statistics_;
};

TEST_F(StatisticsFile, ComesBackWhole) {
  save_statistics(statistics_, path_, "model 1234");
  std::string settings;
  EXPECT_EQ(load_statistics(path_, &settings), statistics_);
  EXPECT_EQ(settings, "model 1234");
  save_statistics({}, path_);
  EXPECT_TRUE(load_statistics(path_).empty());
}

TEST_F(StatisticsFile, GoesAsAMessageToo) {
  for (const float large : {1.0F, 300.0F, 70000.0F}) {
    StatisticMap statistics = statistics_;
    // Counts of one, two and more bytes.
    const std::vector<float> values(static_cast<std::size_t>(large), 0.5F);
    statistics["counts"].add_sample(values);
    const auto message = observe::to_message(statistics);
    EXPECT_EQ(observe::from_message(message), statistics);
    EXPECT_LT(message.size(), observe::to_bytes(statistics).size());
    for (std::size_t size = 0; size < message.size(); size += message.size() / 7) {
      EXPECT_THROW(observe::from_message(std::span(message).first(size)), Error);
    }
  }
}

TEST_F(StatisticsFile, GoesOnAfterLoading) {
  save_statistics(statistics_, path_);
  StatisticMap loaded = load_statistics(path_);
  loaded["conv1"].add_sample(made_up(3, 9000, 1));
  statistics_["conv1"].add_sample(made_up(3, 9000, 1));
  EXPECT_EQ(loaded, statistics_);
}

TEST_F(StatisticsFile, MergesByName) {
  StatisticMap other;
  other["conv1"] = statistic_of({made_up(4, 100)});
  other["conv2"] = statistic_of({made_up(5, 100)});
  Statistic expected = statistics_["conv1"];
  expected.merge(other["conv1"]);
  merge_statistics(statistics_, other);
  EXPECT_EQ(statistics_["conv1"], expected);
  EXPECT_EQ(statistics_["conv2"], other["conv2"]);
}

TEST_F(StatisticsFile, RefusesEveryCut) {
  save_statistics({{"x", statistic_of({{1, 2, 3}})}}, path_);
  const std::string whole = read();
  for (std::size_t size = 0; size < whole.size(); size += size < 200 ? 1 : 101) {
    write(whole.substr(0, size));
    expect_refused();
  }
  write(whole + "x");
  expect_refused();
}

TEST_F(StatisticsFile, RefusesDamage) {
  save_statistics({{"x", statistic_of({{1, 2, 3}})}}, path_);
  const std::string whole = read();
  for (std::size_t at = 0; at < whole.size(); at += at < 200 ? 1 : 97) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
    write(damaged);
    expect_refused();
  }
}

// The right checksum over wrong sizes and counts, as a forger would make it.
TEST_F(StatisticsFile, RefusesForgedNumbers) {
  save_statistics({{"x", statistic_of({{1, 2, 3}})}}, path_);
  const std::string whole = read();
  const std::size_t body = whole.size() - 8;
  for (std::size_t at = 12; at < body; at += at < 1500 ? 8 : 808) {
    std::string forged = whole.substr(0, body);
    for (std::size_t i = at; i < std::min(at + 8, body); ++i) forged[i] = '\x7f';
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : forged) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    forged.append(reinterpret_cast<const char*>(&hash), sizeof(hash));
    write(forged);
    try {
      for (const auto& [name, statistic] : load_statistics(path_)) {
        for (const auto& info : all_observers()) info.range(statistic, {});
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::BadData);
    }
  }
}

TEST_F(StatisticsFile, NamesAFileThatIsNotThere) {
  try {
    load_statistics(path_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Io);
    EXPECT_NE(std::string(error.what()).find(path_), std::string::npos);
  }
}

}  // namespace
}  // namespace quench
