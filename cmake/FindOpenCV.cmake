# SPDX-License-Identifier: Apache-2.0
# Finds single modules of OpenCV without OpenCVConfig.cmake, which Debian ships in libopencv-dev only,
# together with every module's development files. find_package(OpenCV 4 REQUIRED COMPONENTS core ...)
# gives a target opencv_<component> each.
include(FindPackageHandleStandardArgs)
find_path(OpenCV_INCLUDE_DIR opencv2/core/version.hpp PATH_SUFFIXES opencv4)
mark_as_advanced(OpenCV_INCLUDE_DIR)
if(OpenCV_INCLUDE_DIR)
  file(STRINGS ${OpenCV_INCLUDE_DIR}/opencv2/core/version.hpp opencv_version_lines
    REGEX "^#define CV_VERSION_(MAJOR|MINOR|REVISION) +[0-9]+")
  list(TRANSFORM opencv_version_lines REPLACE "[^0-9]+" "")
  list(JOIN opencv_version_lines "." OpenCV_VERSION)
endif()
foreach(component IN LISTS OpenCV_FIND_COMPONENTS)
  find_library(OpenCV_${component}_LIBRARY opencv_${component})
  mark_as_advanced(OpenCV_${component}_LIBRARY)
  if(OpenCV_INCLUDE_DIR AND OpenCV_${component}_LIBRARY
      AND EXISTS ${OpenCV_INCLUDE_DIR}/opencv2/${component}.hpp)
    set(OpenCV_${component}_FOUND TRUE)
    if(NOT TARGET opencv_${component})
      add_library(opencv_${component} UNKNOWN IMPORTED)
      set_target_properties(opencv_${component} PROPERTIES
        IMPORTED_LOCATION ${OpenCV_${component}_LIBRARY}
        INTERFACE_INCLUDE_DIRECTORIES ${OpenCV_INCLUDE_DIR})
    endif()
  endif()
endforeach()
find_package_handle_standard_args(OpenCV
  REQUIRED_VARS OpenCV_INCLUDE_DIR VERSION_VAR OpenCV_VERSION HANDLE_COMPONENTS)
