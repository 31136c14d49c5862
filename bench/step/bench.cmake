add_executable(bench_floor ${CMAKE_CURRENT_LIST_DIR}/floor.cc)
find_package(OpenMP REQUIRED)  # for oneDNN's own threads, the yardstick
target_link_libraries(bench_floor PRIVATE cairn_cpu DNNL::dnnl OpenMP::OpenMP_CXX)
