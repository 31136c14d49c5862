add_executable(bench_recompute_vs_offload ${CMAKE_CURRENT_LIST_DIR}/recompute_vs_offload_bench.cc
                                          ${CMAKE_CURRENT_LIST_DIR}/link_bench.cc
                                          ${CMAKE_CURRENT_LIST_DIR}/ops.cc
                                          ${CMAKE_SOURCE_DIR}/bench/kernels/cases.cc)
target_link_libraries(bench_recompute_vs_offload PRIVATE cairn_device benchmark::benchmark)
