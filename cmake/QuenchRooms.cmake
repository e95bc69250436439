# SPDX-License-Identifier: Apache-2.0
# A room is a folder of src/ and one object library. tools/check_layers keeps the direction.

add_library(quench_compile_options INTERFACE)
target_compile_options(quench_compile_options INTERFACE -Wall -Wextra -Wconversion -Wshadow
  -Wno-missing-field-initializers)  # members have defaults; designated initialisers leave them
# g++ 12 takes the empty strings of aggregates for uninitialised ones when it optimises, and sees
# overlapping copies in string sums (its bug 105651).
target_compile_options(quench_compile_options INTERFACE
  "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-restrict>")
target_include_directories(quench_compile_options INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
if(QUENCH_WERROR)
  target_compile_options(quench_compile_options INTERFACE -Werror)
endif()

# quench_add_room(<name> SOURCES <files> [LIBRARIES <targets>]): LIBRARIES are third-party ones.
function(quench_add_room name)
  cmake_parse_arguments(room "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_library(quench_${name} OBJECT ${room_SOURCES})
  target_link_libraries(quench_${name} PRIVATE quench_compile_options fmt::fmt ${room_LIBRARIES})
  target_link_libraries(quench PRIVATE quench_${name} ${room_LIBRARIES})
endfunction()

# quench_add_module(<name> SOURCES <files> LIBRARIES <targets>): a part that is loaded on first use.
function(quench_add_module name)
  cmake_parse_arguments(module "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_library(quench_${name} MODULE ${module_SOURCES})
  target_link_libraries(quench_${name} PRIVATE quench_compile_options quench fmt::fmt ${module_LIBRARIES})
  install(TARGETS quench_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/quench)
endfunction()
