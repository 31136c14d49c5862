# The library from every layer's objects: libcairn.so (what capi/abi/symbols.txt names and nothing else), libcairn.a, the
# command `cairn`, and what `cmake --install` lays out.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# ---- libcairn.so, libcairn.a
set(symbols_file ${CMAKE_SOURCE_DIR}/capi/abi/symbols.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${symbols_file})
file(STRINGS ${symbols_file} symbols REGEX "^cairn_")
list(JOIN symbols ";\n    " symbols)
set(version_script ${CMAKE_BINARY_DIR}/generated/cairn.map)
file(CONFIGURE OUTPUT ${version_script} CONTENT "CAIRN_1.0 {\n  global:\n    @symbols@;\n  local: *;\n};\n" @ONLY)

set(cairn_libraries PkgConfig::simdjson PkgConfig::xxhash PkgConfig::hwy ${CMAKE_DL_LIBS})
add_library(cairn SHARED ${objects})
target_link_libraries(cairn PRIVATE cairn_flags ${cairn_libraries})
target_include_directories(cairn INTERFACE ${CMAKE_SOURCE_DIR}/capi/include)
target_link_options(cairn PRIVATE -Wl,--version-script=${version_script} -Wl,--as-needed)
if(NOT CAIRN_SANITIZE)  # sanitizers leave their symbols to the program
  target_link_options(cairn PRIVATE -Wl,--no-undefined)
endif()
# The plugin for GPUs is looked up where the library lies.
set_target_properties(cairn PROPERTIES INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH TRUE)
set_target_properties(cairn PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
                                       LINK_DEPENDS ${version_script})

add_library(cairn_static STATIC ${objects})
target_link_libraries(cairn_static PUBLIC ${cairn_libraries} cairn_flags)
set_target_properties(cairn_static PROPERTIES OUTPUT_NAME cairn LINKER_LANGUAGE CXX)

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
file(GLOB cli_main CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/scripts/cli/main.c)
if(cli_main)
  add_executable(cairn_cli ${cli_main})
  set_target_properties(cairn_cli PROPERTIES OUTPUT_NAME cairn INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  target_link_libraries(cairn_cli PRIVATE cairn PkgConfig::luajit)
  target_compile_definitions(cairn_cli PRIVATE CAIRN_LUA_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                                               CAIRN_LUA_INSTALL_DIR="${CMAKE_INSTALL_PREFIX}/${lua_folder}")
  target_link_options(cairn_cli PRIVATE -Wl,-E)
  cairn_portable(cairn_cli)
  if(CAIRN_SANITIZE)
    target_link_options(cairn_cli PRIVATE -fsanitize=${CAIRN_SANITIZE})
  endif()
  install(TARGETS cairn_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# ---- install
install(TARGETS cairn cairn_static LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY capi/include/cairn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(DIRECTORY capi/docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY bindings/lua DESTINATION ${lua_folder}/bindings FILES_MATCHING PATTERN "*.lua")
install(DIRECTORY bindings/go DESTINATION ${lua_folder}/bindings COMPONENT development
        FILES_MATCHING PATTERN "*.go" PATTERN "go.mod" PATTERN "*.h" PATTERN "*.c" PATTERN "*.md")
install(DIRECTORY scripts DESTINATION ${lua_folder} FILES_MATCHING PATTERN "*.lua" PATTERN "devices/*.json")

# What a static link needs beside libcairn.a, as linker flags; the same in cairn.pc and cairnConfig.cmake.
set(private_libraries hwy simdjson xxhash)
list(APPEND private_libraries stdc++ m pthread dl)
list(TRANSFORM private_libraries PREPEND "-l" OUTPUT_VARIABLE private_flags)
list(JOIN private_flags " " private_flags)
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/cairn.pc.in generated/cairn.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/generated/cairn.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/cairn)
configure_package_config_file(cmake/cairnConfig.cmake.in generated/cairnConfig.cmake INSTALL_DESTINATION ${config_folder}
                              PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(generated/cairnConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/cairnConfig.cmake ${CMAKE_BINARY_DIR}/generated/cairnConfigVersion.cmake
        DESTINATION ${config_folder})
