# The command as its users call it; the checks over all sources; the suites under sanitizers.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
# A folder for each of scripts/cli; an entry is named by its file alone.
set(searching_tests plan_test golden_test weights_test)  # as the product does; the others only want plans
file(GLOB script_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/scripts/*/*_test.py)
foreach(file ${script_tests})
  get_filename_component(name ${file} NAME_WE)
  add_test(NAME scripts/${name} COMMAND ${Python3_EXECUTABLE} -B ${file})
  set_tests_properties(scripts/${name} PROPERTIES ENVIRONMENT "CAIRN=$<TARGET_FILE:cairn_cli>")
  if(NOT name IN_LIST searching_tests)
    cairn_brief_command(scripts/${name})
  endif()
endforeach()

add_test(NAME arrows COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/arrows_test.py)
add_test(NAME unnamed COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/unnamed_test.py)
add_test(NAME pure COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/pure_test.py)
add_test(NAME sizes COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_SOURCE_DIR}/tests/sizes_test.py)
add_test(NAME dev COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_SOURCE_DIR}/tests/dev_test.py)
add_test(NAME names COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_SOURCE_DIR}/tests/names_test.py)
add_test(NAME words COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_SOURCE_DIR}/tests/words_test.py)
add_test(NAME format COMMAND ${CMAKE_SOURCE_DIR}/dev format --check)
find_program(LUACHECK luacheck)
if(LUACHECK)
  add_test(NAME luacheck COMMAND ${LUACHECK} -q bindings scripts tests WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
endif()

# Set by `./dev test`, which builds these programs first: the suites that run in each sanitized build, as tests of this
# one, so that all share the processors.
set(CAIRN_ASAN_TESTS "" CACHE STRING "suites to run in build/asan")
set(CAIRN_TSAN_TESTS "" CACHE STRING "suites to run in build/tsan")
foreach(sanitizer asan tsan)
  string(TOUPPER ${sanitizer} upper)
  foreach(suite ${CAIRN_${upper}_TESTS})
    string(REPLACE "/" "_" program test_${suite})
    add_test(NAME ${sanitizer}/${suite} COMMAND ${CMAKE_SOURCE_DIR}/build/${sanitizer}/bin/${program})
    # Random problems: fewer than without sanitizers, which take ten times as long. Reports name fewer callers of an allocation,
    # which costs a tenth less. COST: the longest begin first.
    set_tests_properties(${sanitizer}/${suite} PROPERTIES
      ENVIRONMENT "RC_PARAMS=max_success=12;ASAN_OPTIONS=malloc_context_size=8" COST 100)
  endforeach()
endforeach()
