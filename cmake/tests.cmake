# tests/<path>/*_test.cc make one program per folder, test_<path with _>, linked with that folder's layer.
find_package(GTest REQUIRED)

# What tests do themselves takes little time; compiling them takes much.
set(test_optimisation -O1)
if(CAIRN_SANITIZE)
  set(test_optimisation -O0)
endif()

# One precompiled header for all of them: an executable, since those are compiled otherwise than libraries are.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/test_headers.cc CONTENT "int main() {}\n")
add_executable(cairn_test_headers ${CMAKE_BINARY_DIR}/generated/test_headers.cc)
target_link_libraries(cairn_test_headers PRIVATE GTest::gtest_main cairn_flags)
target_compile_options(cairn_test_headers PRIVATE ${test_optimisation})
target_compile_definitions(cairn_test_headers PRIVATE CAIRN_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                                                      CAIRN_BINARY_DIR="${CMAKE_BINARY_DIR}")
target_precompile_headers(cairn_test_headers PRIVATE <gtest/gtest.h> <string> <vector> <memory> <map>)

function(cairn_test_folder folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${folder}/*_test.cc)
  if(NOT sources)
    return()
  endif()
  string(REPLACE "/" "_" name test_${folder})
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE GTest::gtest_main ${ARGN})
  target_compile_options(${name} PRIVATE ${test_optimisation})
  target_compile_definitions(${name} PRIVATE CAIRN_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                                             CAIRN_BINARY_DIR="${CMAKE_BINARY_DIR}")
  target_precompile_headers(${name} REUSE_FROM cairn_test_headers)
  add_test(NAME ${folder} COMMAND ${name})
endfunction()

find_library(RAPIDCHECK rapidcheck REQUIRED)
cairn_test_folder(runtime/base cairn_base)
cairn_test_folder(runtime/plan cairn_plan_checked ${RAPIDCHECK})
cairn_test_folder(runtime/ops cairn_ops)
cairn_test_folder(kernels cairn_cpu cairn_ops)
cairn_test_folder(conformance cairn_engine)
cairn_test_folder(golden cairn_io)
cairn_test_folder(runtime/graph cairn_graph)
cairn_test_folder(runtime/device cairn_device)
cairn_test_folder(fault/device cairn_io)
cairn_test_folder(runtime/costs cairn_costs)
cairn_test_folder(runtime/engine cairn_engine)
cairn_test_folder(runtime/step cairn_step)
cairn_test_folder(runtime/data cairn_data)
cairn_test_folder(runtime/io cairn_io)
cairn_test_folder(fault cairn_io)
if(NOT CAIRN_SANITIZE)  # they have a heap of their own
  cairn_test_folder(fault/memory cairn cairn_flags)
  file(GLOB heap_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fault/memory/*.cc)
  list(FILTER heap_sources EXCLUDE REGEX "_test\\.cc$")
  target_sources(test_fault_memory PRIVATE ${heap_sources})
endif()
file(GLOB extra CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*/tests.cmake)
foreach(file ${extra})
  include(${file})
endforeach()

# `ctest --parallel` counts processors. Tests use two threads for short times only, so each counts as one, but for those
# that compare measured times.
set(alone bench scripts/profile_test)
foreach(test ${alone})
  if(TEST ${test})
    set_property(TEST ${test} PROPERTY PROCESSORS 4)
  endif()
endforeach()
