# What is found on this machine, and what the build holds because of it. Each library has one job (README, "Dependencies").

find_package(Threads REQUIRED)
find_package(TBB 2021.8 REQUIRED)
find_package(HDF5 1.10.7 REQUIRED COMPONENTS C)
find_package(fmt REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)

# CUDA: one binary holds both backends where the toolkit is found.
set(PENSTOCK_HAS_CUDA OFF)
if(NOT PENSTOCK_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 75-virtual 80-real 86-real 90-real CACHE STRING "CUDA architectures")
    endif()
    enable_language(CUDA)
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    find_package(CUDAToolkit REQUIRED)
    set(PENSTOCK_HAS_CUDA ON)
  elseif(PENSTOCK_CUDA STREQUAL "ON")
    message(FATAL_ERROR "PENSTOCK_CUDA is ON, but no CUDA compiler was found; put nvcc on PATH or set CMAKE_CUDA_COMPILER")
  endif()
endif()

# Thrust: from the toolkit with CUDA, from libthrust-dev without.
if(PENSTOCK_HAS_CUDA)
  find_package(CCCL QUIET HINTS "${CUDAToolkit_LIBRARY_ROOT}/lib64/cmake" "${CUDAToolkit_LIBRARY_DIR}/cmake")
else()
  find_path(PENSTOCK_THRUST_INCLUDE thrust/version.h REQUIRED)
endif()

# Matrix products on the host.
find_path(PENSTOCK_OPENBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas x86_64-linux-gnu REQUIRED)
find_library(PENSTOCK_OPENBLAS_LIBRARY openblas REQUIRED)

# Decoders are optional: what is absent goes through libhdf5, and is said.
macro(penstock_decoder variable header library)
  find_path(PENSTOCK_${variable}_INCLUDE ${header})
  find_library(PENSTOCK_${variable}_LIBRARY ${library})
  if(PENSTOCK_${variable}_INCLUDE AND PENSTOCK_${variable}_LIBRARY)
    set(PENSTOCK_HAS_${variable} ON)
  else()
    set(PENSTOCK_HAS_${variable} OFF)
    message(STATUS "penstock: ${library} not found; datasets that need it are read through libhdf5")
  endif()
endmacro()
penstock_decoder(LIBDEFLATE libdeflate.h deflate)
penstock_decoder(LZ4 lz4.h lz4)
penstock_decoder(ZSTD zstd.h zstd)
penstock_decoder(BLOSC blosc.h blosc)
penstock_decoder(AEC libaec.h aec)

configure_file("${PROJECT_SOURCE_DIR}/cmake/config.hpp.in" "${PROJECT_BINARY_DIR}/include/penstock/config.hpp" @ONLY)
