// SPDX-License-Identifier: Apache-2.0
// A row of options.inc is all that an option needs: this is built with one more.
#include <gtest/gtest.h>

#include "options/row.h"
#include "quench/error.h"
#include "quench/option_table.h"

namespace quench {
namespace {

TEST(MadeUpOption, IsMemberFlagAndSetting) {
  QuantizeOptions options;
  EXPECT_EQ(options.forbearance, 3);
  EXPECT_EQ(option_text(options, "forbearance"), "3");
  set_option(options, "forbearance", {"7"});
  EXPECT_EQ(options.forbearance, 7);
  const options::Row& row = options::all_rows()[*options::find_row("forbearance")];
  EXPECT_EQ(row.encode(options).dump(), "7");
  row.decode(options, options::Json(8), "settings.forbearance");
  EXPECT_EQ(options.forbearance, 8);
}

TEST(MadeUpOption, IsRefusedWhereItDoesNotFit) {
  QuantizeOptions options;
  EXPECT_EQ(option_takes(find_option("forbearance")), "a whole number from 1 to 9");
  EXPECT_THROW(set_option(options, "forbearance", {"10"}), Error);
  EXPECT_NO_THROW(refuse_idle_options({"forbearance"}, options));
  options.type = QuantType::Weight;
  EXPECT_THROW(refuse_idle_options({"forbearance"}, options), Error);
}

}  // namespace
}  // namespace quench
