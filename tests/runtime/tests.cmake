# What judges the runtime and no one here wrote.
find_program(PYTHON3 python3 REQUIRED)
add_test(NAME runtime/data/template/jinja2
         COMMAND ${PYTHON3} -B ${CMAKE_CURRENT_LIST_DIR}/data/template/compare.py $<TARGET_FILE:cairn>)
