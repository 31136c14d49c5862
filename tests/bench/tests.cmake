# What the benchmarks read and make.
cairn_test_folder(bench cairn_plan)
target_sources(test_bench PRIVATE ${CMAKE_SOURCE_DIR}/bench/layout/minimalloc_csv.cc
                                  ${CMAKE_SOURCE_DIR}/bench/plan/problems.cc)
