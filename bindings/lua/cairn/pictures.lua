-- Pictures: decoded and augmented on threads of the library, some micro-batches ahead.
local ffi = require "ffi"
local core = require "cairn.core"
local instance = require "cairn.instance"
local C = core.C

local Pictures = core.class "pictures"

-- A field of several numbers, given as a list.
local function list(field, count)
  return function(struct, values)
    core.expect_type(values, "table", field, 5)
    if #values ~= count then error(("option '%s': %d numbers expected, %d given"):format(field, count, #values), 4) end
    for i, value in ipairs(values) do struct[field][i - 1] = value end
  end
end

local OPTIONS = {
  bad = core.word("bad", { error = 0, skip = 1, replace = 2 }),
  crop = core.word("crop", { centre = 0, ["random-resized"] = 1, padded = 2 }),
  scale = list("scale", 2), ratio = list("ratio", 2), mean = list("mean", 3), deviation = list("deviation", 3),
}
for _, name in ipairs { "data", "test", "width", "height", "channels", "held_out", "most", "seed", "classes", "shuffle",
                        "workers", "ahead", "bicubic", "padding", "resize", "flip", "brightness", "contrast",
                        "saturation", "hue", "randaugment", "magnitude", "mixup", "cutmix" } do
  OPTIONS[name] = name
end

-- Opens pictures. options: those of cairn_pictures_options_t; bad = "error", "skip" or "replace"; crop = "centre",
-- "random-resized" or "padded". Returns them, or nil, err.
function Pictures.open(options)
  local struct, anchors = core.options("cairn_pictures_options_t", options, OPTIONS)
  local out = ffi.new("cairn_pictures_t*[1]")
  local status = C.cairn_pictures_open(instance.get(), struct, out, core.raw_error)
  core.alive(anchors)
  if status ~= 0 then return core.failed(status) end
  local made = Pictures.wrap(out[0])
  made.pixels = struct.width * struct.height
  made.numbers = made.pixels * (struct.channels == 1 and 1 or 3)
  return made
end

-- {count, bad, classes, texts}: pictures of an epoch, those that could not be read so far, classes, whether each has a
-- text.
function Pictures:info()
  local info = ffi.new("cairn_pictures_info_t", { ffi.sizeof("cairn_pictures_info_t") })
  local status = C.cairn_pictures_info(self:raw(), info, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return { count = tonumber(info.count), bad = tonumber(info.bad), classes = info.classes, texts = info.texts ~= 0 }
end

-- The name of a class, from 0; or nil, err.
function Pictures:class(number)
  local out = ffi.new("cairn_text_t*[1]")
  local status = C.cairn_pictures_class(self:raw(), number, out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return core.take_text(out)
end

-- The text of a picture, by the number that a micro-batch gave it; or nil, err.
function Pictures:text(item)
  local out = ffi.new("cairn_text_t*[1]")
  local status = C.cairn_pictures_text(self:raw(), item, out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return core.take_text(out)
end

-- A digest of which pictures there are: of their names, classes and texts, not of their pixels; or nil, err.
function Pictures:content()
  local out = ffi.new("cairn_text_t*[1]")
  local status = C.cairn_pictures_content(self:raw(), out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return core.take_text(out)
end

-- Bytes of a row of each buffer.
local function row_bytes(self)
  return { pixels = 4 * self.numbers, labels = 4, others = 4, shares = 4, items = 8, masks = 4 * self.pixels }
end

-- Micro-batch number `index` (from 0) into the buffers of `to`, each of which may be left out: pixels, labels, others,
-- shares, items, masks. Returns the rows that hold pictures, or nil, err.
function Pictures:batch(index, batch, to)
  local handle, struct = self:raw(), ffi.new("cairn_pictures_batch_t")
  struct.struct_size = ffi.sizeof(struct)
  self.row_bytes = self.row_bytes or row_bytes(self)
  for name, buffer in pairs(to) do
    local bytes = self.row_bytes[name]
    if not bytes then error(("unknown buffer '%s'"):format(tostring(name)), 2) end
    if tostring(ffi.typeof(buffer)):find("[", 1, true) and ffi.sizeof(buffer) < batch * bytes then
      error(("%s: an array of %d bytes given, %.0f needed"):format(name, ffi.sizeof(buffer), batch * bytes), 2)
    end
    struct[name] = buffer
  end
  local rows = ffi.new("uint32_t[1]")
  local status = C.cairn_pictures_read(handle, index, batch, struct, rows, core.raw_error)
  core.alive(to)
  if status ~= 0 then return core.failed(status) end
  return tonumber(rows[0])
end

return { Pictures = Pictures }
