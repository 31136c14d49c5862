# The CUDA backend, twice from the same sources: kernels/cuda/*.cu and *.cc are common, native/ needs the toolkit,
# emulated/ stands in for GPU, driver and libraries in tests. The first is the plugin libcairn_cuda.so.
file(GLOB cuda_kernels CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/cuda/*.cu)
file(GLOB cuda_hosts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/cuda/*.cc ${CMAKE_SOURCE_DIR}/runtime/device/cuda/*.cc)
file(GLOB cuda_emulated CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/cuda/emulated/*.cc)
file(GLOB cuda_native CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/cuda/native/*.cc)

if(CAIRN_CUDA)
  enable_language(CUDA)
endif()

if(CAIRN_TESTS AND NOT CAIRN_SANITIZE)
  # As C++; set per target by a library of its own, since a source's language is one for the whole directory.
  set(emulated_kernels)
  foreach(file ${cuda_kernels})
    get_filename_component(name ${file} NAME_WE)
    set(copy ${CMAKE_BINARY_DIR}/emulated/${name}.cc)
    file(CONFIGURE OUTPUT ${copy} CONTENT "#include \"kernels/cuda/${name}.cu\"\n" @ONLY)
    list(APPEND emulated_kernels ${copy})
  endforeach()
  add_library(cairn_cuda_emulated STATIC ${emulated_kernels} ${cuda_hosts} ${cuda_emulated})
  target_include_directories(cairn_cuda_emulated PUBLIC ${CMAKE_SOURCE_DIR}/kernels/cuda/emulated/include)
  target_link_libraries(cairn_cuda_emulated PUBLIC cairn_flags cairn_base cairn_reference cairn_device)
  # As a plugin that `--device cuda:0` finds where LD_LIBRARY_PATH leads here.
  add_library(cairn_cuda_emulated_plugin MODULE ${CMAKE_SOURCE_DIR}/runtime/device/cuda/plugin.cc)
  target_link_libraries(cairn_cuda_emulated_plugin PRIVATE cairn_cuda_emulated)
  set_target_properties(cairn_cuda_emulated_plugin PROPERTIES OUTPUT_NAME cairn_cuda
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/emulated/lib)
endif()
