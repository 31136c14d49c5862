add_executable(bench_layout ${CMAKE_CURRENT_LIST_DIR}/layout_bench.cc ${CMAKE_CURRENT_LIST_DIR}/hard_blocks.cc
                            ${CMAKE_CURRENT_LIST_DIR}/minimalloc_csv.cc
                            ${CMAKE_SOURCE_DIR}/bench/plan/problems.cc
                            ${CMAKE_SOURCE_DIR}/bench/plan/irregular.cc)
target_link_libraries(bench_layout PRIVATE cairn_plan benchmark::benchmark)
