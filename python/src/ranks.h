// SPDX-License-Identifier: Apache-2.0
// The argument `distributed`: this process as one of several that share a call.
#pragma once

#include <pybind11/pybind11.h>

#include "quench/context.h"
#include "quench/error.h"

namespace quench::python {

/// Gives the context the ranks of this process, its part of the cores and its GPU. `distributed`
/// is None or False: nothing; True: what the launcher's environment says; or a dict with what it
/// does not say. The first call waits for the other processes; later ones go on with them.
void join(const pybind11::object& distributed, Context& context);

/// Until what rank 0 writes is there, for the caller's next step.
void wait_for_files(const Context& context);

/// Ends the call for the other processes too.
void tell_ranks(const Context& context, const Error& error);

}  // namespace quench::python
