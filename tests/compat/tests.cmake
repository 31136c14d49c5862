# Files written by earlier releases: they must be readable for ever.
cairn_test_folder(compat cairn_io)

# Programs compiled with headers of earlier releases run on this library.
if(NOT CAIRN_SANITIZE)
  find_program(PYTHON3 python3 REQUIRED)
  add_test(NAME compat/abi COMMAND ${PYTHON3} -B ${CMAKE_SOURCE_DIR}/tests/compat/abi_test.py $<TARGET_FILE:cairn>
                                   ${CMAKE_C_COMPILER} ${CMAKE_CXX_COMPILER})
endif()
