# SPDX-License-Identifier: Apache-2.0
# Writes a C++ file with the bytes of files: -DOUT=... -DNAMES=a;b -DFILES=x;y.
set(text "// Made by src/report/embed.cmake.\n#include \"report/html_parts.h\"\n\nnamespace quench::report {\n")
foreach(name file IN ZIP_LISTS NAMES FILES)
  file(READ "${file}" bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(APPEND text "namespace {\nconst unsigned char k_${name}[] = {${bytes}};\n}\n"
    "std::string_view ${name}() {\n  return {reinterpret_cast<const char*>(k_${name}), sizeof(k_${name})};\n}\n")
endforeach()
file(WRITE "${OUT}" "${text}}  // namespace quench::report\n")
