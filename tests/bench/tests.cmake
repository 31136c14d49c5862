# What the benchmarks read and make.
cairn_test_folder(bench cairn_plan)
target_sources(test_bench PRIVATE ${CMAKE_SOURCE_DIR}/bench/layout/minimalloc_csv.cc
                                  ${CMAKE_SOURCE_DIR}/bench/plan/problems.cc)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME bench/gpu_bars COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/gpu_bars_test.py)
