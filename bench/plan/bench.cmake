add_executable(bench_plan ${CMAKE_CURRENT_LIST_DIR}/plan_bench.cc ${CMAKE_CURRENT_LIST_DIR}/problems.cc)
target_link_libraries(bench_plan PRIVATE cairn_plan benchmark::benchmark)
