# Installs a build of Penstock into a fresh prefix, then builds and runs the consumer project against it.
cmake_path(GET CMAKE_CURRENT_LIST_FILE PARENT_PATH source)
set(folder "${penstock_build}/consumer")
file(REMOVE_RECURSE "${folder}")

function(step)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

step(${CMAKE_COMMAND} --install "${penstock_build}" --prefix "${folder}/prefix")
step(${CMAKE_COMMAND} -S "${source}" -B "${folder}/build" -G Ninja -D CMAKE_BUILD_TYPE=Release
  -D "CMAKE_CXX_COMPILER=${compiler}" -D "CMAKE_PREFIX_PATH=${folder}/prefix")
step(${CMAKE_COMMAND} --build "${folder}/build")
step("${folder}/build/consumer" "${folder}/numbers.h5")
if(EXISTS "${penstock_build}/bin/penstock-inspect")  # built with PENSTOCK_EXAMPLES
  step("${folder}/prefix/bin/penstock-inspect" "${folder}/numbers.h5")
endif()
