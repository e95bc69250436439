# SPDX-License-Identifier: Apache-2.0
# Debian packages (make deb): quench, libquench-dev and python3-quench, made by CPack.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME quench)
set(CPACK_PACKAGE_VENDOR "Quench")
set(CPACK_PACKAGE_CONTACT "Quench <quench@localhost>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/deb)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL runtime Development)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# Which packages hold the libraries that ours were linked with is dpkg's to say.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_HOMEPAGE "")

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME quench)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "Quantises trained models, and runs, scores and times them
 The program quench, the library libquench and its modules.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libquench-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "quench (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Headers and CMake package of libquench
 What a C++ program needs to be built with the library of Quench.")

if(TARGET quench_python)
  list(APPEND CPACK_COMPONENTS_ALL python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-quench)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
    "quench (= ${PROJECT_VERSION}), python3 (>= 3.11), python3 (<< 3.12), python3-numpy")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  set(CPACK_COMPONENT_PYTHON_DESCRIPTION "Python package of Quench
 Quantises trained models from Python, with NumPy arrays in and out.")
endif()
include(CPack)
