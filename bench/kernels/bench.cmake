add_executable(bench_kernels ${CMAKE_SOURCE_DIR}/bench/kernels/kernels_bench.cc
                             ${CMAKE_SOURCE_DIR}/bench/kernels/cases.cc)
target_link_libraries(bench_kernels PRIVATE cairn_cpu cairn_reference benchmark::benchmark)
