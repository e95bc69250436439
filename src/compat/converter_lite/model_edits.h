// SPDX-License-Identifier: Apache-2.0
// What converter_lite's command line changes in a model besides quantising it.
#pragma once

#include "quench/model.h"

namespace quench {

/// Gives inputs with 4 dimensions another layout: channels last where `to_last`, else first. Where
/// a Transpose behind an input undoes it already, that goes.
void move_input_channels(Model& model, bool to_last);

/// Stores float constants that nodes compute with in half precision, with a Cast behind each;
/// scales, and numbers beyond its range, stay as they are. Returns whether there are any.
bool store_half(Model& model);

}  // namespace quench
