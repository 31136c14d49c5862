# The CUDA backend, twice from the same sources: kernels/cuda is common, its native/ needs the toolkit, and tests/cuda/emulated
# stands in for GPU, driver and libraries in tests. The first is the plugin libcairn_cuda.so.
set(cuda_dir ${CMAKE_SOURCE_DIR}/kernels/cuda)
file(GLOB cuda_kernels CONFIGURE_DEPENDS ${cuda_dir}/*.cu ${cuda_dir}/attention/*.cu ${cuda_dir}/products/*.cu
     ${cuda_dir}/vocabulary/*.cu ${cuda_dir}/optimizers/*.cu ${cuda_dir}/experts/*.cu
     ${cuda_dir}/pictures/*.cu ${cuda_dir}/recurrent/*.cu)
file(GLOB cuda_hosts CONFIGURE_DEPENDS ${cuda_dir}/*.cc ${cuda_dir}/attention/*.cc ${cuda_dir}/products/*.cc
     ${CMAKE_SOURCE_DIR}/runtime/base/cuda/*.cc ${CMAKE_SOURCE_DIR}/runtime/device/cuda/*.cc)
file(GLOB cuda_emulated CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/cuda/emulated/*.cc)
file(GLOB cuda_native CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/cuda/native/*.cc)

set(plugin_link_options -Wl,--no-undefined -Wl,-z,relro,-z,now)  # it is opened whole (RTLD_NOW)

if(CAIRN_CUDA)
  # Machine code for A100, RTX 4090 and H100/H200; PTX for what comes later.
  set(CAIRN_CUDA_ARCHITECTURES "80-real;89-real;90a-real;90-virtual" CACHE STRING "as CMAKE_CUDA_ARCHITECTURES")
  set(CMAKE_CUDA_ARCHITECTURES ${CAIRN_CUDA_ARCHITECTURES})
  enable_language(CUDA)
  if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know it of this compiler
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  find_package(CUDAToolkit 13 REQUIRED)
  set(cuda_plugin ${CMAKE_SOURCE_DIR}/runtime/device/cuda/plugin.cc)
  list(REMOVE_ITEM cuda_hosts ${cuda_plugin})
  add_library(cairn_cuda_native STATIC ${cuda_kernels} ${cuda_hosts} ${cuda_native})
  target_include_directories(cairn_cuda_native PUBLIC ${CMAKE_SOURCE_DIR})
  # Attention and convolutions by cuDNN, where both headers are there (`./dev gpu --bundle` fetches the second); else by our own kernels.
  find_path(CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_path(CUDNN_FRONTEND_INCLUDE cudnn_frontend.h HINTS ${CMAKE_SOURCE_DIR}/build/deps/cudnn_frontend/include)
  if(CUDNN_INCLUDE AND CUDNN_FRONTEND_INCLUDE)
    set_source_files_properties(${cuda_dir}/native/cudnn.cc ${cuda_dir}/native/cudnn_attention.cc
                                ${cuda_dir}/native/cudnn_convolution.cc PROPERTIES INCLUDE_DIRECTORIES "${CUDNN_INCLUDE};${CUDNN_FRONTEND_INCLUDE}")
  else()
    message(STATUS "no cuDNN headers: attention and convolutions by cairn's own kernels alone")
  endif()
  target_compile_options(cairn_cuda_native PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr --compress-mode=size -Xptxas=-v -Xptxas=-warn-spills>
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -ffp-contract=off>)
  target_link_libraries(cairn_cuda_native PUBLIC cairn_base cairn_reference cairn_device CUDA::cudart_static ${CMAKE_DL_LIBS})
  set_target_properties(cairn_cuda_native PROPERTIES CUDA_VISIBILITY_PRESET hidden)
  add_library(cairn_cuda MODULE ${cuda_plugin})
  target_link_libraries(cairn_cuda PRIVATE cairn_cuda_native)
  target_link_options(cairn_cuda PRIVATE ${plugin_link_options})
  cairn_packaged(cairn_cuda)
  install(TARGETS cairn_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cuda)
  if(CAIRN_TESTS)
    file(GLOB gpu_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/cuda/gpu/*.cc)
    add_executable(cairn_gpu_conformance ${gpu_tests})
    target_link_libraries(cairn_gpu_conformance PRIVATE GTest::gtest_main cairn_cuda_native cairn_exec)
    cairn_portable(cairn_gpu_conformance)
    # cuDNN plans for a device that is only described: no GPU is needed.
    if(CUDNN_INCLUDE AND CUDNN_FRONTEND_INCLUDE)
      add_library(cairn_no_cudart MODULE ${CMAKE_SOURCE_DIR}/tests/cuda/native/no_cudart.cc)
      target_include_directories(cairn_no_cudart PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
      add_executable(test_cuda_native ${CMAKE_SOURCE_DIR}/tests/cuda/native/cudnn_graph_test.cc
                     ${CMAKE_SOURCE_DIR}/tests/cuda/native/cudnn_convolution_test.cc)
      add_dependencies(test_cuda_native cairn_no_cudart)
      target_include_directories(test_cuda_native SYSTEM PRIVATE ${CUDNN_INCLUDE} ${CUDNN_FRONTEND_INCLUDE} ${CUDAToolkit_INCLUDE_DIRS})
      target_compile_definitions(test_cuda_native PRIVATE
        CAIRN_NO_CUDART="$<TARGET_FILE:cairn_no_cudart>" CAIRN_LINK_DRIVER="${CUDA_cuda_driver_LIBRARY}"
        CAIRN_CUDA_LIBRARIES="${CUDAToolkit_LIBRARY_DIR}")
      target_link_libraries(test_cuda_native PRIVATE GTest::gtest_main cairn_base ${CMAKE_DL_LIBS})
      add_test(NAME cuda/native COMMAND test_cuda_native)
    endif()
  endif()
endif()

if(CAIRN_TESTS AND NOT CAIRN_SANITIZE)
  # As C++; set per target by a library of its own, since a source's language is one for the whole directory.
  set(emulated_kernels)
  foreach(file ${cuda_kernels})
    file(RELATIVE_PATH name ${cuda_dir} ${file})
    set(copy ${CMAKE_BINARY_DIR}/emulated/${name}.cc)
    file(CONFIGURE OUTPUT ${copy} CONTENT "#include \"kernels/cuda/${name}\"\n" @ONLY)
    list(APPEND emulated_kernels ${copy})
  endforeach()
  add_library(cairn_cuda_emulated STATIC ${emulated_kernels} ${cuda_hosts} ${cuda_emulated})
  # As nvcc compiles vector accesses; and optimised less, which takes two thirds of the time to compile.
  target_compile_options(cairn_cuda_emulated PRIVATE -fno-strict-aliasing -O1)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(cairn_cuda_emulated PRIVATE -fno-tree-vectorize)  # GCC 12's vectorizer ends with an internal error there
  endif()
  target_include_directories(cairn_cuda_emulated PUBLIC ${CMAKE_SOURCE_DIR}/tests/cuda ${CMAKE_SOURCE_DIR}/tests/cuda/emulated/include)
  target_link_libraries(cairn_cuda_emulated PUBLIC cairn_flags cairn_base cairn_reference cairn_device)
  target_precompile_headers(cairn_cuda_emulated REUSE_FROM cairn_headers)
  # As a plugin that `--device cuda:0` finds where LD_LIBRARY_PATH leads here.
  add_library(cairn_cuda_emulated_plugin MODULE ${CMAKE_SOURCE_DIR}/runtime/device/cuda/plugin.cc)
  target_link_libraries(cairn_cuda_emulated_plugin PRIVATE cairn_cuda_emulated)
  target_link_options(cairn_cuda_emulated_plugin PRIVATE ${plugin_link_options})
  set_target_properties(cairn_cuda_emulated_plugin PROPERTIES OUTPUT_NAME cairn_cuda
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/emulated/lib)
endif()
