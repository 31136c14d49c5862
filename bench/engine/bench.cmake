add_executable(bench_engine ${CMAKE_CURRENT_LIST_DIR}/launch_bench.cc)
target_link_libraries(bench_engine PRIVATE cairn_exec benchmark::benchmark)
add_executable(bench_experts ${CMAKE_CURRENT_LIST_DIR}/experts_bench.cc)
target_link_libraries(bench_experts PRIVATE cairn_exec)
