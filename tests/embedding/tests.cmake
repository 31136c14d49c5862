# cairn inside of other programs: each host is a program that knows libcairn.so, or a plugin of it, and nothing else.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(embedding ${CMAKE_CURRENT_LIST_DIR})

add_library(embedded_trainer SHARED ${embedding}/trainer.cc)
target_include_directories(embedded_trainer PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/capi/include)
target_link_libraries(embedded_trainer PRIVATE cairn)

function(cairn_host name)  # NAME.cc, linked with the libraries that follow
  add_executable(${name} ${embedding}/${name}.cc)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE Threads::Threads ${CMAKE_DL_LIBS} ${ARGN})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/embedding)
  if(CAIRN_SANITIZE)
    target_compile_options(${name} PRIVATE -fsanitize=${CAIRN_SANITIZE})
    target_link_options(${name} PRIVATE -fsanitize=${CAIRN_SANITIZE})
  endif()
endfunction()

set(hosts "HOST=${CMAKE_BINARY_DIR}/embedding/host" "LOADING_HOST=${CMAKE_BINARY_DIR}/embedding/loading_host"
          "PLUGIN=$<TARGET_FILE:embedded_trainer>")
cairn_host(host embedded_trainer)
cairn_host(loading_host)
add_dependencies(loading_host embedded_trainer)
find_package(OpenMP)  # hosts have it, cairn does not need it
if(OpenMP_CXX_FOUND AND NOT CAIRN_SANITIZE)
  cairn_host(openmp_host embedded_trainer OpenMP::OpenMP_CXX)
  list(APPEND hosts "OPENMP_HOST=${CMAKE_BINARY_DIR}/embedding/openmp_host")
endif()
find_package(MPI COMPONENTS CXX QUIET)
if(MPI_CXX_FOUND)
  cairn_host(mpi_host embedded_trainer MPI::MPI_CXX)
  list(APPEND hosts "MPI_HOST=${CMAKE_BINARY_DIR}/embedding/mpi_host" "MPIRUN=${MPIEXEC_EXECUTABLE}")
endif()

add_test(NAME embedding/hosts COMMAND ${Python3_EXECUTABLE} -B ${embedding}/hosts_test.py)
# As long as oneDNN brings libgomp into the library: that ends the process when it gets no thread, and its splits depend on
# what it gets. Goes with DNNL::dnnl in CMakeLists.txt.
set(onednn "")
if(TARGET DNNL::dnnl)
  set(onednn "ONEDNN=1")
  set_property(TEST fault/device APPEND PROPERTY ENVIRONMENT OMP_THREAD_LIMIT=1)
endif()
set_tests_properties(embedding/hosts PROPERTIES ENVIRONMENT "${hosts};${onednn}")
add_test(NAME embedding/environment COMMAND ${Python3_EXECUTABLE} -B ${embedding}/environment_test.py)
set_tests_properties(embedding/environment PROPERTIES ENVIRONMENT "CAIRN=$<TARGET_FILE:cairn_cli>;${onednn}")
