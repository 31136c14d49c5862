add_executable(bench_kernels ${CMAKE_SOURCE_DIR}/bench/kernels/kernels_bench.cc
                             ${CMAKE_SOURCE_DIR}/bench/kernels/cases.cc)
target_link_libraries(bench_kernels PRIVATE cairn_cpu cairn_reference benchmark::benchmark)
add_executable(bench_convolutions ${CMAKE_SOURCE_DIR}/bench/kernels/convolutions_bench.cc
                                  ${CMAKE_SOURCE_DIR}/bench/kernels/cases.cc)
target_link_libraries(bench_convolutions PRIVATE cairn_cpu cairn_reference)
add_executable(bench_optimizer ${CMAKE_SOURCE_DIR}/bench/kernels/optimizer_bench.cc)
target_link_libraries(bench_optimizer PRIVATE cairn_cpu cairn_ops)
add_executable(bench_products ${CMAKE_SOURCE_DIR}/bench/kernels/products_bench.cc
                              ${CMAKE_SOURCE_DIR}/bench/kernels/peer_products.cc)
target_link_libraries(bench_products PRIVATE cairn_cpu)
if(TARGET DNNL::dnnl)
  find_package(OpenMP REQUIRED)
  target_compile_definitions(bench_products PRIVATE CAIRN_BENCH_ONEDNN)
  target_link_libraries(bench_products PRIVATE DNNL::dnnl OpenMP::OpenMP_CXX)
endif()
