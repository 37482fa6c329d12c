# What is found on this machine, and what the build holds because of it. Each library has one job (README, "Dependencies").

find_package(Threads REQUIRED)
find_package(TBB 2021.8 REQUIRED)
find_package(HDF5 1.10.7 REQUIRED COMPONENTS C)
find_package(fmt REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)

# Matrix products on the host are required; decoders are optional: what is absent goes through libhdf5.
include(PenstockExternal)
if(NOT PENSTOCK_HAS_OPENBLAS)
  message(FATAL_ERROR "OpenBLAS (cblas.h and libopenblas) was not found; on Debian and Ubuntu it is libopenblas-dev")
endif()

# CUDA: one binary holds both backends where the toolkit is found. nvcc is looked for on PATH, then in the toolkit's usual place.
set(PENSTOCK_HAS_CUDA OFF)
if(NOT PENSTOCK_CUDA STREQUAL "OFF")
  if(NOT CMAKE_CUDA_COMPILER)
    unset(CMAKE_CUDA_COMPILER CACHE)  # that none was found is kept, and keeps one that is there since from being looked for
  endif()
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(PENSTOCK_NVCC nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
    mark_as_advanced(PENSTOCK_NVCC)
    if(PENSTOCK_NVCC)
      set(CMAKE_CUDA_COMPILER "${PENSTOCK_NVCC}" CACHE FILEPATH "CUDA compiler")
    endif()
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      # Native code for Ampere and Hopper; Turing, Ada and what comes later compile the virtual code when they first load it.
      set(CMAKE_CUDA_ARCHITECTURES 75-virtual 80-real 86-real 90 CACHE STRING "CUDA architectures")
    endif()
    enable_language(CUDA)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc speaks C++20
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    endif()
    set(CMAKE_CUDA_EXTENSIONS OFF)
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
    find_package(CUDAToolkit REQUIRED)
    set(PENSTOCK_HAS_CUDA ON)
  elseif(PENSTOCK_CUDA STREQUAL "ON")
    message(FATAL_ERROR "PENSTOCK_CUDA is ON, but no CUDA compiler was found; put nvcc on PATH or set CMAKE_CUDA_COMPILER")
  endif()
endif()

# Thrust: from the toolkit (nvcc finds it by itself; host sources by this path), or from libthrust-dev where there is no
# toolkit. Host sources must not reach for CUDA's headers, which is Thrust's default: their device system is TBB.
add_library(penstock_thrust INTERFACE)
find_path(PENSTOCK_THRUST_INCLUDE thrust/version.h
  HINTS ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES cccl REQUIRED)
mark_as_advanced(PENSTOCK_THRUST_INCLUDE)
target_include_directories(penstock_thrust SYSTEM INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${PENSTOCK_THRUST_INCLUDE}>")
target_compile_definitions(penstock_thrust INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:THRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_TBB>")
target_link_libraries(penstock_thrust INTERFACE TBB::tbb)

configure_file("${PROJECT_SOURCE_DIR}/cmake/config.hpp.in" "${PROJECT_BINARY_DIR}/include/penstock/config.hpp" @ONLY)
