# The library from every layer's objects: libcairn.so (what capi/abi/symbols.txt names and nothing else), libcairn.a, the
# command `cairn`, and what `cmake --install` lays out, in components that are packages, too (cmake/packages.cmake).
option(CAIRN_PACKAGES "lay out what Debian packages hold, below /usr, for cpack" OFF)
if(CAIRN_PACKAGES)
  set(CMAKE_INSTALL_PREFIX /usr)
  set(CMAKE_SKIP_INSTALL_RPATH ON)
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
# From one folder to another, also where some were given as absolute paths: what is laid out may be moved.
file(RELATIVE_PATH bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
file(RELATIVE_PATH prefix_to_lib ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH prefix_to_include ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})

# ---- libcairn.so, libcairn.a
set(symbols_file ${CMAKE_SOURCE_DIR}/capi/abi/symbols.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${symbols_file})
file(STRINGS ${symbols_file} symbols REGEX "^cairn_")
list(JOIN symbols ";\n    " symbols)
set(version_script ${CMAKE_BINARY_DIR}/generated/cairn.map)
file(CONFIGURE OUTPUT ${version_script} CONTENT "CAIRN_1.0 {\n  global:\n    @symbols@;\n  local: *;\n};\n" @ONLY)

# What packages have of a program or library: no lines for debuggers, all symbols resolved when it is loaded.
function(cairn_packaged target)
  if(NOT CAIRN_PACKAGES)
    return()
  endif()
  set(strip ${CMAKE_STRIP} --strip-debug --remove-section=.comment --enable-deterministic-archives)
  add_custom_command(TARGET ${target} POST_BUILD COMMAND ${strip} $<TARGET_FILE:${target}> VERBATIM)
  get_target_property(type ${target} TYPE)
  if(NOT type STREQUAL STATIC_LIBRARY)
    target_link_options(${target} PRIVATE -Wl,-z,relro,-z,now)
  endif()
endfunction()

set(cairn_libraries PkgConfig::simdjson PkgConfig::xxhash PkgConfig::hwy ${tokenizer_libraries} ${picture_libraries} ${CMAKE_DL_LIBS})
# What every shared library of ours is linked with; a test of the command has one of its own (cmake/tests.cmake).
function(cairn_shared target)
  target_link_libraries(${target} PRIVATE ${imported_layers} cairn_flags ${cairn_libraries})
  target_include_directories(${target} INTERFACE ${CMAKE_SOURCE_DIR}/capi/include)
  target_link_options(${target} PRIVATE -Wl,--version-script=${version_script} -Wl,--as-needed)
  if(NOT CAIRN_SANITIZE)  # sanitizers leave their symbols to the program
    target_link_options(${target} PRIVATE -Wl,--no-undefined)
  endif()
  # The plugin for GPUs is looked up where the library lies; packages put both where the loader looks anyway.
  if(NOT CMAKE_SKIP_INSTALL_RPATH)
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH TRUE)
  endif()
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
                                             LINK_DEPENDS ${version_script})
endfunction()
add_library(cairn SHARED ${objects})
cairn_shared(cairn)
cairn_packaged(cairn)

# Symbols of the archive are hidden, so that a library that has it inside exports none of them, and two of them in a program
# are strangers. For that, what defines them is compiled once more: hidden, no version script could export them.
if(CAIRN_BUILD_STATIC)
  cairn_layer(cairn_archive capi/src/{.,models,pictures} cairn_io cairn_report)
  get_target_property(archive_type cairn_archive TYPE)
  if(archive_type STREQUAL STATIC_LIBRARY)  # not all objects are another tree's
    target_compile_definitions(cairn_archive PRIVATE CAIRN_INTO_ARCHIVE)
  endif()
  cairn_objects(defining)
  set(archived ${objects})
  list(FILTER archived EXCLUDE REGEX "[:/]cairn_capi(>|\\.dir/)")
  add_library(cairn_static STATIC ${archived} ${defining})
  target_link_libraries(cairn_static PUBLIC ${imported_layers} ${cairn_libraries} cairn_flags)
  set_target_properties(cairn_static PROPERTIES OUTPUT_NAME cairn LINKER_LANGUAGE CXX)
  cairn_packaged(cairn_static)
endif()

# A program that finds its libraries in lib/ beside its bin/, wherever both are carried (`./dev gpu --bundle`), and those
# that these need as well: the older kind of path, which libraries inherit.
function(cairn_portable target)
  set_target_properties(${target} PROPERTIES BUILD_RPATH "$ORIGIN/../lib" BUILD_RPATH_USE_ORIGIN TRUE)
  if(CAIRN_CUDA)
    target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
  endif()
endfunction()

# ---- the command: Lua on the binding; main.c only starts it
set(lua_folder ${CMAKE_INSTALL_DATADIR}/cairn)  # the layout of the source tree, as main.c looks for it
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/share)
file(CREATE_LINK ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/share/cairn SYMBOLIC)
if(CAIRN_BUILD_COMMAND)
  add_executable(cairn_cli scripts/cli/main.c scripts/cli/prefetch.c)
  set_target_properties(cairn_cli PROPERTIES OUTPUT_NAME cairn INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
  target_link_libraries(cairn_cli PRIVATE cairn PkgConfig::luajit)
  target_link_options(cairn_cli PRIVATE -Wl,-E)
  cairn_portable(cairn_cli)
  cairn_packaged(cairn_cli)
  if(CAIRN_SANITIZE)
    target_link_options(cairn_cli PRIVATE -fsanitize=${CAIRN_SANITIZE})
  endif()
  # Models for programs in any language, by the command's modules: libcairn opens it at run time (capi/src/models/model.cc).
  add_library(cairn_models MODULE scripts/host/plugin.c)
  target_link_libraries(cairn_models PRIVATE PkgConfig::luajit ${CMAKE_DL_LIBS})
  target_include_directories(cairn_models PRIVATE ${CMAKE_SOURCE_DIR})
  set_target_properties(cairn_models PROPERTIES C_VISIBILITY_PRESET hidden LIBRARY_OUTPUT_DIRECTORY
                                                $<TARGET_FILE_DIR:cairn>)
  cairn_packaged(cairn_models)
  if(CAIRN_SANITIZE)
    target_link_options(cairn_models PRIVATE -fsanitize=${CAIRN_SANITIZE})
  endif()
  install(TARGETS cairn_models LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT command)
  include(cmake/pages.cmake)
  # `require "cairn"` in a LuaJIT of the same prefix.
  file(CREATE_LINK ../../cairn/bindings/lua/cairn.lua ${CMAKE_BINARY_DIR}/share/cairn.lua SYMBOLIC)
  file(CREATE_LINK ../../cairn/bindings/lua/cairn ${CMAKE_BINARY_DIR}/share/modules SYMBOLIC)
  install(FILES ${CMAKE_BINARY_DIR}/share/cairn.lua DESTINATION ${CMAKE_INSTALL_DATADIR}/lua/5.1 COMPONENT command)
  install(FILES ${CMAKE_BINARY_DIR}/share/modules DESTINATION ${CMAKE_INSTALL_DATADIR}/lua/5.1 RENAME cairn COMPONENT command)
  install(TARGETS cairn_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
  install(DIRECTORY bindings/lua DESTINATION ${lua_folder}/bindings COMPONENT command FILES_MATCHING PATTERN "*.lua")
  install(DIRECTORY scripts/cli scripts/devices scripts/families scripts/host scripts/recipes
          DESTINATION ${lua_folder}/scripts COMPONENT command
          FILES_MATCHING PATTERN "*.lua" PATTERN "*.json")
endif()

# ---- install
set(library_docs ${CMAKE_INSTALL_DOCDIR})
if(CAIRN_PACKAGES)
  set(library_docs ${CMAKE_INSTALL_DATAROOTDIR}/doc/libcairn-dev)
endif()
install(TARGETS cairn LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development)
if(CAIRN_BUILD_STATIC)
  install(TARGETS cairn_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
endif()
install(DIRECTORY capi/include/cairn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
include(cmake/docs.cmake)
if(NOT CAIRN_PACKAGES)  # they have it in their copyright files
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT library)
endif()
install(DIRECTORY bindings/go DESTINATION ${lua_folder}/bindings COMPONENT development
        FILES_MATCHING PATTERN "*.go" PATTERN "go.mod" PATTERN "*.h" PATTERN "*.c" PATTERN "*.md")
install(DIRECTORY bindings/rust DESTINATION ${lua_folder}/bindings COMPONENT development
        FILES_MATCHING PATTERN "*.rs" PATTERN "Cargo.*" PATTERN target EXCLUDE)

# What a static link needs beside libcairn.a, as linker flags; the same in cairn.pc and cairnConfig.cmake.
set(private_libraries hwy simdjson xxhash)
if(CAIRN_TOKENIZERS)
  list(APPEND private_libraries onig utf8proc)
endif()
foreach(row "CAIRN_PNG spng z" "CAIRN_JPEG turbojpeg" "CAIRN_WEBP webp" "CAIRN_ZLIB z")
  separate_arguments(row)
  list(POP_FRONT row option)
  if(${option})
    list(APPEND private_libraries ${row})
  endif()
endforeach()
list(APPEND private_libraries stdc++ m pthread dl)
list(TRANSFORM private_libraries PREPEND "-l" OUTPUT_VARIABLE private_flags)
list(JOIN private_flags " " private_flags)
set(parts_words)  # the parts that are there, of those that can be left out
foreach(part ${cairn_parts})
  string(TOUPPER ${part} upper)
  if(CAIRN_${upper})
    list(APPEND parts_words ${part})
  endif()
endforeach()
list(JOIN parts_words " " parts_text)
configure_file(cmake/cairn.pc.in generated/cairn.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/generated/cairn.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/cairn)
configure_package_config_file(cmake/cairnConfig.cmake.in generated/cairnConfig.cmake INSTALL_DESTINATION ${config_folder}
                              PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(generated/cairnConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/cairnConfig.cmake ${CMAKE_BINARY_DIR}/generated/cairnConfigVersion.cmake
        DESTINATION ${config_folder} COMPONENT development)

if(CAIRN_PACKAGES)
  include(cmake/packages.cmake)
endif()
