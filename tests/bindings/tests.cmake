# Programs for the Lua binding, run by the command's own LuaJIT; and the freshness of the generated declarations.
file(GLOB lua_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/bindings/*_test.lua)
foreach(file ${lua_tests})
  get_filename_component(name ${file} NAME_WE)
  add_test(NAME bindings/${name} COMMAND cairn_cli lua ${file})
  set_tests_properties(bindings/${name} PROPERTIES
    ENVIRONMENT "LUA_PATH=${CMAKE_SOURCE_DIR}/tests/bindings/?.lua")
endforeach()
include(${CMAKE_CURRENT_LIST_DIR}/rust/tests.cmake)
add_test(NAME bindings/cdef_fresh COMMAND ${CMAKE_SOURCE_DIR}/bindings/lua/make_cdef.sh --check)
include(${CMAKE_CURRENT_LIST_DIR}/go/tests.cmake)
