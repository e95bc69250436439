// SPDX-License-Identifier: Apache-2.0
// The one place of this room that includes libtorch's frontend.
#pragma once

#include "exec/engine/torch.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <torch/torch.h>
#pragma GCC diagnostic pop
