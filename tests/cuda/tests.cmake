# The CUDA backend on the emulation: kernels, device, driver errors. What needs a GPU is `./dev gpu`.
if(TARGET cairn_cuda_emulated)
  cairn_test_folder(cuda cairn_cuda_emulated cairn_engine)
endif()
