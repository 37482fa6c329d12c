# What `cmake --install` puts where: libraries, headers, and the package that find_package(penstock) reads; the
# programs of examples/ go to bin/ beside them.

get_property(modules GLOBAL PROPERTY PENSTOCK_MODULES)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/penstock")

install(TARGETS ${modules} EXPORT penstockTargets
  FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILE_SET generated DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT penstockTargets NAMESPACE penstock:: DESTINATION "${package_dir}")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/penstockConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/penstockConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/penstockConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/penstockConfig.cmake"
  "${PROJECT_BINARY_DIR}/penstockConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/PenstockExternal.cmake"
  DESTINATION "${package_dir}")
