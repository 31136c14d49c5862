# The command as its users call it; the checks over all sources; the suites under sanitizers.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
file(GLOB script_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/scripts/*_test.py)
foreach(file ${script_tests})
  get_filename_component(name ${file} NAME_WE)
  add_test(NAME scripts/${name} COMMAND ${Python3_EXECUTABLE} -B ${file})
  set_tests_properties(scripts/${name} PROPERTIES ENVIRONMENT "CAIRN=$<TARGET_FILE:cairn_cli>")
endforeach()

add_test(NAME arrows COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/arrows_test.py)
add_test(NAME format COMMAND ${CMAKE_SOURCE_DIR}/dev format --check)
find_program(LUACHECK luacheck)
if(LUACHECK)
  add_test(NAME luacheck COMMAND ${LUACHECK} -q bindings scripts tests WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
endif()

# Set by `./dev test`, which builds these programs first: a regular expression of the suites to run in each build.
set(CAIRN_ASAN_TESTS "" CACHE STRING "tests to run in build/asan")
set(CAIRN_TSAN_TESTS "" CACHE STRING "tests to run in build/tsan")
foreach(sanitizer asan tsan)
  string(TOUPPER ${sanitizer} upper)
  if(CAIRN_${upper}_TESTS)
    add_test(NAME sanitizers/${sanitizer}
             COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${CMAKE_SOURCE_DIR}/build/${sanitizer} --output-on-failure
                     --timeout 600 --no-tests=error -R "${CAIRN_${upper}_TESTS}")
    # Random problems: fewer than without sanitizers, which take ten times as long.
    set_tests_properties(sanitizers/${sanitizer} PROPERTIES ENVIRONMENT RC_PARAMS=max_success=30)
  endif()
endforeach()
