# Programs for the Lua binding, run by the command's own LuaJIT; and the freshness of the generated declarations.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
file(GLOB lua_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/bindings/*_test.lua)
foreach(file ${lua_tests})
  get_filename_component(name ${file} NAME_WE)
  add_test(NAME bindings/${name} COMMAND cairn_cli lua ${file})
  set_tests_properties(bindings/${name} PROPERTIES
    ENVIRONMENT "LUA_PATH=${CMAKE_SOURCE_DIR}/tests/bindings/?.lua")
endforeach()
include(${CMAKE_CURRENT_LIST_DIR}/cpp/tests.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/rust/tests.cmake)
add_test(NAME bindings/cdef_fresh COMMAND ${CMAKE_SOURCE_DIR}/bindings/lua/make_cdef.sh --check)
include(${CMAKE_CURRENT_LIST_DIR}/go/tests.cmake)
# In a LuaJIT that is not the command, and as a rock.
find_program(LUAJIT luajit)
if(LUAJIT AND NOT CAIRN_SANITIZE)
  set(plain_tests data graph handles train)
  list(TRANSFORM plain_tests REPLACE "(.+)" "${CMAKE_SOURCE_DIR}/tests/bindings/\\1_test.lua")
  add_test(NAME bindings/luajit COMMAND ${LUAJIT} ${CMAKE_SOURCE_DIR}/tests/bindings/plain.lua ${plain_tests})
  set_tests_properties(bindings/luajit PROPERTIES ENVIRONMENT
    "LUA_PATH=${CMAKE_SOURCE_DIR}/tests/bindings/?.lua\;${CMAKE_SOURCE_DIR}/bindings/lua/?.lua;CAIRN_LIBRARY=$<TARGET_FILE:cairn>")
  add_test(NAME bindings/rock COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_SOURCE_DIR}/tests/bindings/rock_test.py $<TARGET_FILE:cairn>)
endif()
