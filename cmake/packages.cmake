# Debian packages of the components, made by `cpack` (`./dev package`) in a tree with CAIRN_PACKAGES:
#   libcairn1      the library: its name follows the major version, so that it can be installed beside another major version's
#   libcairn-dev   headers, libcairn.a, pkg-config, CMake
#   cairn          the command, recipes, manual pages, completions, the Lua binding
#   cairn-cuda     libcairn_cuda.so, where it is built (CAIRN_CUDA) or was built in another tree (CAIRN_CUDA_LIBRARY)
# A domain that never is one (RFC 2606): the form that policy asks for, and nobody's address.
set(CAIRN_MAINTAINER "The cairn developers <maintainer@cairn.invalid>" CACHE STRING "maintainer of packages, as NAME <ADDRESS>")
set(CAIRN_CUDA_LIBRARY "" CACHE FILEPATH "a libcairn_cuda.so of this version, to be packaged as it is")
set(CAIRN_PACKAGE_RELEASE 1 CACHE STRING "number of a package of the same version")
find_program(GZIP gzip REQUIRED)
find_program(SHLIBDEPS dpkg-shlibdeps)
if(NOT SHLIBDEPS)
  message(FATAL_ERROR "CAIRN_PACKAGES: dpkg-shlibdeps is missing; install the Debian package dpkg-dev")
endif()

set(package_version ${PROJECT_VERSION}-${CAIRN_PACKAGE_RELEASE})
set(library_package libcairn${PROJECT_VERSION_MAJOR})
set(packages_folder ${CMAKE_BINARY_DIR}/packages_files)
set(CPACK_COMPONENTS_ALL library development command)
if(CAIRN_CUDA OR CAIRN_CUDA_LIBRARY)
  list(APPEND CPACK_COMPONENTS_ALL cuda)
endif()
# Each package says whose it is, what changed, and which of lintian's findings are meant, and why.
function(cairn_package component package section)
  set(folder ${packages_folder}/${package})
  configure_file(cmake/packages/changelog.in ${folder}/changelog.Debian @ONLY)
  configure_file(CHANGELOG.md ${folder}/changelog COPYONLY)
  execute_process(COMMAND ${GZIP} -9nf ${folder}/changelog.Debian ${folder}/changelog COMMAND_ERROR_IS_FATAL ANY)
  configure_file(cmake/packages/copyright.in ${folder}/copyright @ONLY)
  configure_file(cmake/packages/${component}.overrides.in ${folder}/overrides/${package} @ONLY)
  install(FILES ${folder}/overrides/${package} DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/lintian/overrides COMPONENT ${component})
  install(FILES ${folder}/changelog.Debian.gz ${folder}/changelog.gz ${folder}/copyright
          DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package} COMPONENT ${component})
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
endfunction()
cairn_package(library ${library_package} libs)
cairn_package(development libcairn-dev libdevel)
cairn_package(command cairn science)
# Those of several architectures can be installed side by side: what is of one lies in a folder of its name. CPack has the field
# since 3.31; before, it goes in behind the one before it.
foreach(component LIBRARY DEVELOPMENT)
  if(CMAKE_VERSION VERSION_LESS 3.31)
    set(CPACK_DEBIAN_${component}_PACKAGE_PRIORITY "optional\nMulti-Arch: same")
  else()
    set(CPACK_DEBIAN_${component}_PACKAGE_MULTIARCH same)
  endif()
endforeach()

set(about "cairn trains neural networks inside a memory budget: it decides for every
activation whether to keep it, recompute it, or offload it to host memory or
disk, and says before the first step exactly how many bytes the run will take.
.
")
set(title "training of neural networks inside a memory budget")
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "${title} - library
${about}This package has the shared library, which programs in C, C++ and other
languages are linked with.")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "${title} - development
${about}This package has the headers for C and C++, the static library, examples, the
Rust crates and the Go module, and what pkg-config and CMake need.")
set(CPACK_DEBIAN_COMMAND_DESCRIPTION "${title} - command
${about}This package has the command cairn with its recipes, manual pages and
completions for shells, and the binding for LuaJIT.")
set(CPACK_DEBIAN_CUDA_DESCRIPTION "${title} - NVIDIA GPUs
${about}This package has the plugin by which the library finds NVIDIA GPUs. It needs
their driver, and the libraries cuBLASLt and, for faster attention, cuDNN,
where the loader finds them.")

# The library: whoever is linked with it needs this version or a later one of the same major version.
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
file(WRITE ${packages_folder}/triggers "activate-noawait ldconfig\n")
# Triggers run ldconfig. That a file postinst is named keeps CPack from writing one that runs it once more; there is none.
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${packages_folder}/triggers ${packages_folder}/none/postinst
                                               ${packages_folder}/none/postrm)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SUGGESTS "cairn-cuda (= ${package_version})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${library_package} (= ${package_version})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "libhwy-dev, libonig-dev, libsimdjson-dev, libspng-dev, libturbojpeg0-dev, libutf8proc-dev, libwebp-dev, libxxhash-dev, pkgconf, zlib1g-dev")
set(CPACK_DEBIAN_COMMAND_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMMAND_PACKAGE_DEPENDS "${library_package} (>= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS "cairn-cuda")
set(CPACK_DEBIAN_COMMAND_PACKAGE_CONTROL_EXTRA ${packages_folder}/none/postinst ${packages_folder}/none/postrm)  # its plugin is no library
if(CAIRN_CUDA OR CAIRN_CUDA_LIBRARY)
  cairn_package(cuda cairn-cuda science)
  if(CAIRN_CUDA_LIBRARY)
    set(plugin ${packages_folder}/libcairn_cuda.so)
    execute_process(COMMAND ${CMAKE_STRIP} --strip-unneeded --remove-section=.comment -o ${plugin} ${CAIRN_CUDA_LIBRARY}
                    COMMAND_ERROR_IS_FATAL ANY)
    install(FILES ${plugin} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cuda)
  endif()
  set(CPACK_DEBIAN_CUDA_PACKAGE_SHLIBDEPS ON)
  # The two pass C++ types to each other.
  set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "${library_package} (= ${package_version})")
  set(CPACK_DEBIAN_CUDA_PACKAGE_CONTROL_EXTRA ${packages_folder}/none/postinst ${packages_folder}/none/postrm)
endif()
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib)

set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_PACKAGE_NAME cairn)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_DEBIAN_PACKAGE_RELEASE ${CAIRN_PACKAGE_RELEASE})
set(CPACK_DEBIAN_PACKAGE_SOURCE cairn)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${CAIRN_MAINTAINER})
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                               WORLD_READ WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
include(CPack)
