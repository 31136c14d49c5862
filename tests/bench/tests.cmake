# What the benchmarks read and make.
cairn_test_folder(bench cairn_plan)
target_sources(test_bench PRIVATE ${CMAKE_SOURCE_DIR}/bench/layout/hard_blocks.cc
                                  ${CMAKE_SOURCE_DIR}/bench/layout/minimalloc_csv.cc
                                  ${CMAKE_SOURCE_DIR}/bench/plan/problems.cc
                                  ${CMAKE_SOURCE_DIR}/bench/plan/irregular.cc)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
foreach(name gpu_bars gpu_run)
  add_test(NAME bench/${name} COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/${name}_test.py)
endforeach()
if(CAIRN_BENCH)
  add_test(NAME bench/usage COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/usage_test.py ${CMAKE_BINARY_DIR}/bin)
endif()
