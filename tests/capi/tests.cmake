# The C ABI: as seen through libcairn.so (tests/capi), its own parts (tests/capi/src), its goldens, and its examples.
find_program(PYTHON3 python3 REQUIRED)
cairn_test_folder(capi cairn cairn_flags SUBFOLDERS pictures)
cairn_test_folder(capi/models cairn cairn_flags)
cairn_test_folder(capi/src cairn_capi)

add_test(NAME capi/header COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tests/capi/header_test.py ${CMAKE_C_COMPILER}
                                  ${CMAKE_CXX_COMPILER})
add_test(NAME capi/contract COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tests/capi/contract_test.py)
add_test(NAME capi/abi COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/capi/abi/abi.py --library $<TARGET_FILE:cairn> --compiler
                               ${CMAKE_C_COMPILER})
add_test(NAME capi/dependencies COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tests/capi/dependencies_test.py $<TARGET_FILE:cairn>)

file(GLOB examples CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/capi/examples/*.c ${CMAKE_SOURCE_DIR}/capi/examples/*.cpp)
set(a_model ${CMAKE_SOURCE_DIR}/tests/golden/data/objectives/model)  # for those that want one
foreach(source ${examples})
  get_filename_component(name ${source} NAME)
  string(REPLACE "." "_" target example_${name})
  add_executable(${target} ${source})
  target_link_libraries(${target} PRIVATE cairn cairn_flags m)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/examples)
  # An adapter is not written over one of an earlier run.
  add_test(NAME capi/examples/${name} COMMAND sh -c "rm -rf example-adapter*; exec $<TARGET_FILE:${target}> . ${a_model}"
           WORKING_DIRECTORY ${CMAKE_BINARY_DIR}/examples)
endforeach()
