# Language level, warnings, sanitizers, output folders, and how a module is declared.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

if(PENSTOCK_SANITIZER)
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${PENSTOCK_SANITIZER};-fno-omit-frame-pointer>")
  add_link_options(-fsanitize=${PENSTOCK_SANITIZER})
  if(PENSTOCK_SANITIZER MATCHES "undefined")
    # oneTBB's headers cast tasks whose destructor has run: the check of virtual tables would end every graph there.
    add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize-recover=all;-fno-sanitize=vptr>")
  endif()
endif()

add_library(penstock_warnings INTERFACE)
target_compile_options(penstock_warnings INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wconversion;-Wshadow;-Wnon-virtual-dtor>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>"
  # Designated initialisers leave out what has a default; -Wextra would have all members named.
  "$<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wno-missing-field-initializers>"
  # GCC 12 warns of overlaps that there are not where strings are joined (its bug 105651).
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>")
if(PENSTOCK_WARNINGS_AS_ERRORS)
  target_compile_options(penstock_warnings INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-Werror>" "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>")
endif()

# penstock_module(NAME SOURCES ... HEADERS ... [PUBLIC targets] [PRIVATE targets])
# The library penstock_NAME with alias penstock::NAME. Headers lie under include/; private headers under src/.
function(penstock_module name)
  cmake_parse_arguments(arg "" "" "SOURCES;HEADERS;PUBLIC;PRIVATE" ${ARGN})
  set(target penstock_${name})
  add_library(${target} ${arg_SOURCES})
  add_library(penstock::${name} ALIAS ${target})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS include FILES ${arg_HEADERS})
  target_include_directories(${target} PRIVATE src)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE} $<BUILD_INTERFACE:penstock_warnings>)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} VERIFY_INTERFACE_HEADER_SETS ON)
  set_property(GLOBAL APPEND PROPERTY PENSTOCK_MODULES ${target})
endfunction()
