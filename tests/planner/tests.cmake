# The planner against everything it can be held to: brute force, an exact optimum, an integer program, an independent
# replay, bad input. Few cases by default; CAIRN_PLANNER_CASES=20000 in the environment asks for more of them,
# CAIRN_PLANNER_SEED=1000 for others, CAIRN_PLANNER_CBC_SECONDS=60 gives the integer program longer (20).
cairn_test_folder(planner cairn_plan_checked)
target_sources(test_planner PRIVATE ${CMAKE_SOURCE_DIR}/bench/layout/hard_blocks.cc
                                    ${CMAKE_SOURCE_DIR}/bench/plan/problems.cc ${CMAKE_SOURCE_DIR}/bench/plan/irregular.cc
                                    ${CMAKE_CURRENT_LIST_DIR}/milp.cc)
