std = "luajit"
max_line_length = 120
exclude_files = { "bindings/lua/cairn/cdef.lua", "build" }
