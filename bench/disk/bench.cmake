add_executable(bench_disk ${CMAKE_CURRENT_LIST_DIR}/disk_bench.cc)
target_link_libraries(bench_disk PRIVATE cairn_exec)
