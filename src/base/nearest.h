// SPDX-License-Identifier: Apache-2.0
// The name a user probably meant: public, because the commands suggest names too.
#pragma once

#include "quench/nearest.h"  // IWYU pragma: export
