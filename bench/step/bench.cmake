add_executable(bench_floor ${CMAKE_CURRENT_LIST_DIR}/floor.cc)
target_link_libraries(bench_floor PRIVATE cairn_cpu DNNL::dnnl)
