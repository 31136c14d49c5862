# The CUDA backend on the emulation: kernels, device, driver errors, the engine on top. What needs a GPU is `./dev gpu`.
if(TARGET cairn_cuda_emulated)
  cairn_test_folder(cuda cairn_cuda_emulated cairn_engine)
  cairn_test_folder(cuda/engine cairn_engine)
  add_dependencies(test_cuda_engine cairn_cuda_emulated_plugin)
  set_property(TEST cuda/engine APPEND PROPERTY ENVIRONMENT
               LD_LIBRARY_PATH=$<TARGET_FILE_DIR:cairn_cuda_emulated_plugin>)
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME cuda/resources COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/resources.py)
set_tests_properties(cuda/resources PROPERTIES SKIP_RETURN_CODE 77)
