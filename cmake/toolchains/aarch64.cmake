# AArch64 from a machine of another kind: Debian's cross compiler, its libraries for arm64 in build/deps/aarch64
# (`./dev deps aarch64` puts them there), and programs run by qemu's emulation of a processor.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

get_filename_component(cairn_cross_root "${CMAKE_CURRENT_LIST_DIR}/../../build/deps/aarch64" ABSOLUTE)
if(NOT IS_DIRECTORY "${cairn_cross_root}/usr/lib/aarch64-linux-gnu")
  message(FATAL_ERROR "${cairn_cross_root}: the libraries for arm64 are missing; `./dev deps aarch64` puts them there")
endif()
set(CMAKE_FIND_ROOT_PATH "${cairn_cross_root}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)  # flatc, python3, ccache run here
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} "${cairn_cross_root}/usr/lib/aarch64-linux-gnu/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${cairn_cross_root}")
set(ENV{PKG_CONFIG_ALLOW_SYSTEM_CFLAGS} 1)
set(ENV{PKG_CONFIG_ALLOW_SYSTEM_LIBS} 1)

# Headers there are not ours to warn about, and a linker that resolves what libraries need of each other looks there, too.
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-Wl,-rpath-link,${cairn_cross_root}/usr/lib/aarch64-linux-gnu")
endforeach()

# The C library that the cross compiler links with is what its programs run on.
set(CAIRN_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=${cairn_cross_root}/usr/lib/aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR ${CAIRN_EMULATOR} -cpu max)
