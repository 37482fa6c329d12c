# Libraries that bring no CMake package of their own. Read by the build and by penstockConfig.cmake, so that an installed
# Penstock finds them anew on the machine where it is used.

# penstock_external(NAME HEADER LIBRARY [include path suffixes...]): the imported target penstock::external_NAME and
# PENSTOCK_HAS_<NAME>, ON where both header and library are found.
function(penstock_external name header library)
  string(TOUPPER ${name} upper)
  find_path(PENSTOCK_${upper}_INCLUDE ${header} PATH_SUFFIXES ${ARGN})
  find_library(PENSTOCK_${upper}_LIBRARY ${library})
  mark_as_advanced(PENSTOCK_${upper}_INCLUDE PENSTOCK_${upper}_LIBRARY)
  set(found OFF)
  if(PENSTOCK_${upper}_INCLUDE AND PENSTOCK_${upper}_LIBRARY)
    set(found ON)
    if(NOT TARGET penstock::external_${name})
      add_library(penstock::external_${name} UNKNOWN IMPORTED GLOBAL)
      set_target_properties(penstock::external_${name} PROPERTIES
        IMPORTED_LOCATION "${PENSTOCK_${upper}_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${PENSTOCK_${upper}_INCLUDE}")
    endif()
  endif()
  set(PENSTOCK_HAS_${upper} ${found} PARENT_SCOPE)
endfunction()

penstock_external(openblas cblas.h openblas openblas x86_64-linux-gnu openblas-pthread)
penstock_external(libdeflate libdeflate.h deflate)
penstock_external(lz4 lz4.h lz4)
penstock_external(zstd zstd.h zstd)
penstock_external(blosc blosc.h blosc)
penstock_external(aec libaec.h aec)
