# SPDX-License-Identifier: Apache-2.0
# What is installed, and the CMake package: find_package(Quench) gives quench::quench.
include(CMakePackageConfigHelpers)

set(quench_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Quench)
install(TARGETS quench EXPORT QuenchTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_COMPONENT Development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/quench DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT Development
  FILES_MATCHING PATTERN "*.h" PATTERN "*.inc")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(EXPORT QuenchTargets NAMESPACE quench:: DESTINATION ${quench_package_dir}
  COMPONENT Development)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/QuenchConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/QuenchConfig.cmake
  ${PROJECT_BINARY_DIR}/QuenchConfigVersion.cmake DESTINATION ${quench_package_dir}
  COMPONENT Development)

# What `make build` builds: all that is installed.
add_custom_target(quench_programs DEPENDS quench)
foreach(part quench_cli quench_pages quench_engine quench_images quench_plots)
  if(TARGET ${part})
    add_dependencies(quench_programs ${part})
  endif()
endforeach()
