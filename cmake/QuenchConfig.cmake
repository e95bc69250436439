# SPDX-License-Identifier: Apache-2.0
# Found by find_package(Quench). The library needs no other package to link against: its own
# dependencies are private.
include("${CMAKE_CURRENT_LIST_DIR}/QuenchTargets.cmake")
