// SPDX-License-Identifier: Apache-2.0
// The one place that includes libtorch; precompiled.
#pragma once

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#pragma GCC diagnostic pop
