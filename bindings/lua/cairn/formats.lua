-- How tensors are stored: the formats, and what plans store parameters as by the patterns of their names.
local ffi = require "ffi"
local core = require "cairn.core"
local C = core.C

local formats = {}

-- The formats: an array of {name, bits, block, row, scale_bytes, computed_as, read, trains}.
function formats.list()
  local list = {}
  while true do
    local info = ffi.new("cairn_format_info_t", { ffi.sizeof("cairn_format_info_t") })
    if not core.more(C.cairn_format_describe(#list, info, core.raw_error)) then return list end
    list[#list + 1] = { name = ffi.string(info.name), computed_as = ffi.string(info.computed_as),
                        read = ffi.string(info.read), bits = info.bits, block = info.block,
                        scale_bytes = info.scale_bytes, row = info.row, trains = info.trains ~= 0 }
  end
end

-- The option `formats`: { { pattern = "h.*.weight", format = "int8" }, ... }.
function formats.set(struct, list, anchors)
  core.expect_type(list, "table", "formats", 4)
  for key in pairs(list) do
    if type(key) ~= "number" or key < 1 or key > #list then
      error(("formats: unknown '%s'; wanted: a list of { pattern =, format = }"):format(tostring(key)), 4)
    end
  end
  local array = ffi.new("cairn_parameter_format_t[?]", math.max(#list, 1))
  for i, row in ipairs(list) do
    local what = ("formats[%d]"):format(i)
    core.expect_type(row, "table", what, 4)
    for key in pairs(row) do
      if key ~= "pattern" and key ~= "format" then
        error(("%s: unknown '%s' (known: pattern format)"):format(what, tostring(key)), 4)
      end
    end
    array[i - 1].pattern = core.expect_type(row.pattern, "string", what .. ".pattern", 4)
    array[i - 1].format = core.expect_type(row.format, "string", what .. ".format", 4)
  end
  struct.formats, struct.format_count = array, #list
  anchors[#anchors + 1], anchors[#anchors + 2] = array, list
end

return formats
