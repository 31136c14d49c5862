# Each bench/<folder>/bench.cmake declares its own programs.
find_package(benchmark REQUIRED)
file(GLOB benches CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/*/bench.cmake)
foreach(file ${benches})
  include(${file})
endforeach()
