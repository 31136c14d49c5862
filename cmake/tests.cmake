# tests/<path>/*_test.cc make one program per folder, test_<path with _>, linked with that folder's layer; those of the
# folders within that SUBFOLDERS names go into it.
find_package(GTest REQUIRED)

# What most tests do themselves takes little time; compiling them takes much. These compute what they compare with.
set(computing_tests kernels conformance golden runtime/plan runtime/ops planner cuda)
if(CAIRN_SANITIZE)
  set(computing_tests)
endif()

# These want many plans of small models, whatever they are: they search a fraction, as all do with sanitizers. The full search is
# what runtime/plan, planner and the command check, and under CAIRN_TEST=long (`./dev test long`) these, too. A program's own
# object goes before a library's.
set(CAIRN_TEST_SEARCH_SHARE 16 CACHE STRING "tests that only want plans search one in so many steps")
set(planning_tests runtime/compile runtime/exec runtime/step runtime/generate runtime/io fault fault/device cuda/engine)
add_library(cairn_brief_search OBJECT ${CMAKE_SOURCE_DIR}/runtime/plan/search/search_all.cc)
target_link_libraries(cairn_brief_search PRIVATE cairn_plan)
target_compile_definitions(cairn_brief_search PRIVATE CAIRN_SEARCH_SHARE=${CAIRN_TEST_SEARCH_SHARE})
target_precompile_headers(cairn_brief_search REUSE_FROM cairn_headers)
if(CAIRN_SANITIZE)
  set(planning_tests)
endif()

# The same planner for trees with sanitizers (CAIRN_RELEASE_BUILD), and in a libcairn.so for tests of the command, which the
# loader finds before the product's. cairn_brief_command(TEST...): these check what happens to a plan, or compare plans with
# each other, and plan dozens of models.
if(NOT CAIRN_SANITIZE)
  add_library(cairn_plan_brief STATIC $<FILTER:$<TARGET_OBJECTS:cairn_plan>,EXCLUDE,/search_all\\.cc>
                                      $<TARGET_OBJECTS:cairn_brief_search>)
  set(other_objects ${objects})
  list(REMOVE_ITEM other_objects $<TARGET_OBJECTS:cairn_plan>)
  add_library(cairn_brief SHARED ${other_objects})
  target_link_libraries(cairn_brief PRIVATE cairn_plan_brief)
  cairn_shared(cairn_brief)
  set_target_properties(cairn_brief PROPERTIES OUTPUT_NAME cairn LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/brief)
endif()
function(cairn_brief_command)
  if(TARGET cairn_brief)
    set_property(TEST ${ARGN} APPEND PROPERTY ENVIRONMENT LD_LIBRARY_PATH=$<TARGET_FILE_DIR:cairn_brief>)
  endif()
endfunction()

# A precompiled header for all tests of one optimisation: an executable, since those are compiled otherwise than libraries are.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/test_headers.cc CONTENT "int main() {}\n")
foreach(optimisation 0 1)
  set(headers cairn_test_headers_O${optimisation})
  add_executable(${headers} EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/generated/test_headers.cc)
  target_link_libraries(${headers} PRIVATE GTest::gtest_main cairn_flags)
  target_compile_options(${headers} PRIVATE -O${optimisation})
  target_compile_definitions(${headers} PRIVATE CAIRN_SOURCE_DIR="${CMAKE_SOURCE_DIR}" CAIRN_BINARY_DIR="${CMAKE_BINARY_DIR}")
  target_precompile_headers(${headers} PRIVATE <gtest/gtest.h> <string> <vector> <memory> <map>)
endforeach()

# Tests are compiled many at a time (cmake/batch.py): most of the time goes into headers and templates that they share. Three sources
# of eight tests each take twice the time of one with all of them.
set(test_batch 24)
find_program(PYTHON3 python3 REQUIRED)

# cairn_batched(FOLDER SOURCES...): sets `batched` to sources that hold these, so many each.
function(cairn_batched folder)
  set(batch_script ${CMAKE_SOURCE_DIR}/cmake/batch.py)
  while(ARGN)
    list(LENGTH outs number)
    list(SUBLIST ARGN 0 ${test_batch} sources)
    list(REMOVE_ITEM ARGN ${sources})
    set(out ${CMAKE_BINARY_DIR}/generated/tests/${folder}/batch_${number}.cc)
    add_custom_command(OUTPUT ${out} COMMAND ${PYTHON3} ${batch_script} ${out} ${sources} DEPENDS ${sources} ${batch_script})
    list(APPEND outs ${out})
  endwhile()
  set(batched ${outs} PARENT_SCOPE)
endfunction()

function(cairn_test_folder folder)
  cmake_parse_arguments(PARSE_ARGV 1 own "" "" SUBFOLDERS)
  list(TRANSFORM own_SUBFOLDERS PREPEND ${CMAKE_SOURCE_DIR}/tests/${folder}/)
  list(TRANSFORM own_SUBFOLDERS APPEND /*_test.cc)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${folder}/*_test.cc ${own_SUBFOLDERS})
  if(NOT sources)
    return()
  endif()
  string(REPLACE "/" "_" name test_${folder})
  cairn_batched(${folder} ${sources})
  add_executable(${name} ${batched})
  target_link_libraries(${name} PRIVATE GTest::gtest_main ${own_UNPARSED_ARGUMENTS})
  set(optimisation 0)
  if(folder IN_LIST computing_tests)
    set(optimisation 1)
  endif()
  target_compile_options(${name} PRIVATE -O${optimisation})
  target_compile_definitions(${name} PRIVATE CAIRN_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                                             CAIRN_BINARY_DIR="${CMAKE_BINARY_DIR}")
  target_precompile_headers(${name} REUSE_FROM cairn_test_headers_O${optimisation})
  if(folder IN_LIST planning_tests)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:cairn_brief_search>)
  endif()
  add_test(NAME ${folder} COMMAND ${name})
endfunction()

find_library(RAPIDCHECK rapidcheck REQUIRED)
cairn_test_folder(runtime/formats cairn_base)
cairn_test_folder(runtime/base cairn_base SUBFOLDERS text)
cairn_test_folder(runtime/plan cairn_plan_checked ${RAPIDCHECK} SUBFOLDERS pricing bound layout structure local_search search residency solve json)
target_sources(test_runtime_plan PRIVATE ${CMAKE_SOURCE_DIR}/bench/plan/irregular.cc)
cairn_test_folder(runtime/report cairn_plan_checked cairn_report ${RAPIDCHECK})
cairn_test_folder(runtime/ops cairn_ops)
cairn_test_folder(kernels cairn_cpu cairn_ops)
cairn_test_folder(conformance cairn_exec)
cairn_test_folder(golden cairn_io)
cairn_test_folder(runtime/graph cairn_graph SUBFOLDERS adapters effective updates)
cairn_test_folder(runtime/device cairn_device)
cairn_test_folder(runtime/costs cairn_costs SUBFOLDERS probe)
cairn_test_folder(runtime/compile cairn_exec cairn_report SUBFOLDERS residency regions update)
cairn_test_folder(runtime/exec cairn_exec cairn_report)
cairn_test_folder(runtime/step cairn_step)
cairn_test_folder(runtime/generate cairn_generate cairn_step)
cairn_test_folder(runtime/data cairn_data)
cairn_test_folder(runtime/data/pictures cairn_pictures)
if(CAIRN_TOKENIZERS)
  cairn_test_folder(runtime/data/tokenizer cairn_tokenizer)
  cairn_test_folder(runtime/data/template cairn_template)
endif()
cairn_test_folder(runtime/io cairn_io SUBFOLDERS gguf)
if(NOT CMAKE_CROSSCOMPILING)  # they make system calls fail, not the emulator's
  cairn_test_folder(fault cairn_io)
  cairn_test_folder(fault/device cairn_io)
endif()
if(NOT CAIRN_SANITIZE)  # they have a heap of their own
  cairn_test_folder(fault/memory cairn cairn_flags)
  file(GLOB heap_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fault/memory/*.cc)
  list(FILTER heap_sources EXCLUDE REGEX "_test\\.cc$")
  target_sources(test_fault_memory PRIVATE ${heap_sources})
endif()
file(GLOB extra CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*/tests.cmake)
if(CMAKE_CROSSCOMPILING)  # the others call programs of this tree by themselves, past the emulator
  list(FILTER extra INCLUDE REGEX "/tests/(capi|planner)/")
endif()
foreach(file ${extra})
  include(${file})
endforeach()

# `ctest --parallel` counts processors: tests use two threads for short times only, and no verdict depends on the clock, so
# each counts as one. The longest begin first, by the seconds of an earlier run (`tests/times.py --costs` writes them).
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/test_costs.txt costs REGEX "^[0-9]+ ")
foreach(row ${costs})
  string(REGEX MATCH "^([0-9]+) (.+)$" row "${row}")
  if(TEST ${CMAKE_MATCH_2})
    set_property(TEST ${CMAKE_MATCH_2} PROPERTY COST ${CMAKE_MATCH_1})
  endif()
endforeach()
include(cmake/quick.cmake)

# Plans and predicted seconds that tests compare follow from the model alone, on every machine (cairn.h, cairn_device_options_t).
get_property(all_tests DIRECTORY PROPERTY TESTS)
set_property(TEST ${all_tests} APPEND PROPERTY ENVIRONMENT CAIRN_RATES=model)
