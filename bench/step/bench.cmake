if(TARGET DNNL::dnnl)
  add_executable(bench_floor ${CMAKE_CURRENT_LIST_DIR}/floor.cc)
  # It sets the number of oneDNN's threads.
  find_package(OpenMP REQUIRED)
  target_link_libraries(bench_floor PRIVATE cairn_cpu DNNL::dnnl OpenMP::OpenMP_CXX)
endif()
add_executable(bench_step_products ${CMAKE_CURRENT_LIST_DIR}/step_products.cc
                                   ${CMAKE_SOURCE_DIR}/bench/kernels/cases.cc)
target_link_libraries(bench_step_products PRIVATE cairn_cpu cairn_reference)
