-- A U-Net: down to a small picture and up again, where what a size was on the way down is joined to what comes up. It
-- finds the class of each pixel (Ronneberger et al., 2015), or, with attention where pictures are small, the noise that
-- was mixed into a picture (Ho et al., 2020).
local changed = require "cli.base.changed"
local ffi = require "ffi"
local generator = require "cairn.random"
local nn = require("cairn").nn
local normal = require "cli.base.normal"
local pictured = require "families.parts.pictured"
local pictures = require "cli.data.pictures"
local stages = require "families.parts.stages"

local LEVELS = 1000  -- of noise
local TIME = 64  -- numbers that say a level of noise

local init = nn.init.kaimingNormal("relu", "fan_out")
local function conv(inputs, outputs, kernel, stride)
  return nn.Conv2d(inputs, outputs, kernel, { stride = stride, padding = math.floor(kernel / 2), init = init })
end

local function denoises(o) return o.task == "denoise" end
local function norm(o, channels)
  if o.norm == "batch" then return nn.BatchNorm(channels) end
  local groups = math.min(o.groups, channels)
  while channels % groups ~= 0 do groups = groups - 1 end
  return nn.GroupNorm(groups, channels)
end
local function kind_of(o) return denoises(o) and "plain" or "mask" end

-- Channels of each size, the largest first; nil and what is wrong with the options.
local function widths_of(o)
  if o.widths ~= "" then return stages.numbers("widths", o.widths) end
  local widths = {}
  for level = 1, o.levels do widths[level] = o.width * 2 ^ (level - 1) end
  return widths
end

-- Numbers that a level of noise becomes before blocks are given it.
local function hidden_of(o) return 4 * assert(widths_of(o))[1] end

-- Two convolutions, and what they are given; time (context.time) is added between them.
local Block = nn.define("UNetBlock", function(self, o, inputs, outputs)
  self.o, self.outputs = o, outputs
  self.modules = {
    nn.Sequential():add(norm(o, inputs), "norm1"):add(nn.SiLU()):add(conv(inputs, outputs, 3), "conv1"),
    nn.Sequential():add(norm(o, outputs), "norm2"):add(nn.SiLU()):add(nn.Dropout(o.dropout))
      :add(conv(outputs, outputs, 3), "conv2"),
    inputs == outputs and nn.Identity() or conv(inputs, outputs, 1),
    denoises(o) and nn.Linear(hidden_of(o), outputs) or nil,
  }
end, function(self, context, x)
  local y = context:child("", self.modules[1], x)
  if self.modules[4] then
    local time = context:child("time", self.modules[4], context.time)
    y = y + context:op("reshape", time, { shape = { self.o.batch, 1, 1, self.outputs } })
  end
  return context:child("", self.modules[2], y) + context:child("skip", self.modules[3], x)
end)

-- Attention over all pixels.
local Pixels = nn.define("PixelAttention", function(self, o, channels)
  self.modules = { norm(o, channels), nn.MultiHeadAttention(channels, o.heads) }
end, function(self, context, x)
  local shape = x:shape()
  local y = context:child("norm", self.modules[1], x)
  y = context:op("reshape", y, { shape = { shape[1], shape[2] * shape[3], shape[4] } })
  y = context:child("attn", self.modules[2], y)
  return x + context:op("reshape", y, { shape = shape })
end)

local function attends(o, level) return denoises(o) and o.image / 2 ^ (level - 1) <= o.attention end

-- One size: blocks, then all smaller sizes between its way down and its way up.
local Level
Level = nn.define("UNetLevel", function(self, o, widths, level, inputs)
  local width, below = widths[level], widths[level + 1]
  self.deepest = not below
  self.modules, self.names = {}, {}
  local function add(name, module) self.modules[#self.modules + 1], self.names[#self.names + 1] = module, name end
  local function stage(name, first)
    local chain = nn.Sequential():add(Block(o, first, width), "block")
    if attends(o, level) then chain:add(Pixels(o, width), "attention") end
    add(name, nn.Region(name, nil, chain))
  end
  stage("down" .. level, inputs)
  if not self.deepest then
    add("shrink" .. level, nn.Region("shrink" .. level, nil, conv(width, width, 3, 2)))
    add("", Level(o, widths, level + 1, width))
    local larger = nn.Sequential():add(nn.Upsample { scale = 2 }):add(conv(below, width, 3), "")
    add("grow" .. level, nn.Region("grow" .. level, nil, larger))
    stage("up" .. level, 2 * width)
  end
end, function(self, context, x)
  local function child(i, value) return context:child(self.names[i], self.modules[i], value) end
  x = child(1, x)
  if self.deepest then return x end
  local y = child(4, child(3, child(2, x)))
  return child(5, (context:op("concat", x, y, { axis = 3 })))
end)

local function net(o)
  local widths = assert(widths_of(o))
  local width, outputs = widths[1], denoises(o) and o.channels or o.classes
  local head = nn.Sequential():add(norm(o, width), "norm"):add(nn.SiLU()):add(conv(width, outputs, 3), "conv")
  return nn.Sequential():add(nn.Region("stem", nil, conv(o.channels, width, 3)), "stem")
    :add(Level(o, widths, 1, width), ""):add(nn.Region("head", nil, head), "head")
end

-- How much of a picture is left at a level of noise, from 0: by the cosine of Nichol and Dhariwal (2021).
local function share_left(level)
  return math.cos((level / LEVELS + 0.008) / 1.008 * math.pi / 2) ^ 2
end

-- Pictures with noise in them, the noise, and the level as sines and cosines: a pure function of the seed and of how
-- many samples came before.
local function noisy(o, seed, data)
  local count, batch = o.image * o.image * o.channels, data.batch
  return changed(data, { batch = function(index)
    local arrays, tokens, which, samples = batch(index)
    local input, noise = ffi.new("float[?]", o.batch * count), ffi.new("float[?]", o.batch * count)
    local time = ffi.new("float[?]", o.batch * TIME)
    for i = 0, o.batch - 1 do
      local random = generator(seed + 48611 * (index * o.batch + i + 1))
      local level = math.floor(random() * LEVELS) + 1
      local left = share_left(level)
      local keep, add = math.sqrt(left), math.sqrt(1 - left)
      for k = 0, TIME / 2 - 1 do
        local angle = level * math.exp(-math.log(10000) * k / (TIME / 2))
        time[i * TIME + 2 * k], time[i * TIME + 2 * k + 1] = math.sin(angle), math.cos(angle)
      end
      for p = i * count, (i + 1) * count - 1 do
        noise[p] = normal(random)
        input[p] = keep * arrays.input[p] + add * noise[p]
      end
    end
    return { input = input, noise = noise, time = time }, tokens, which, samples
  end })
end

local function task_data(o, seed, data) return denoises(o) and noisy(o, seed, data) or data end

local OPTIONS = {
  { "task", "segmentation", "segmentation: the class of each pixel; denoise: the noise that was put into a picture",
    choices = { "segmentation", "denoise" } },
  { "width", 32, "channels of the largest size, twice as many at each smaller one", whole = true, least = 4 },
  { "levels", 4, "sizes, each half of the one before; image is divided by all", whole = true, least = 1, most = 8 },
  { "widths", "", "channels of each size, as 32,64,128; default: as width and levels say" },
  { "norm", "group", "by groups of channels of a picture, or by channel", choices = { "group", "batch" } },
  { "groups", 8, "of channels, at most", whole = true, least = 1 },
  { "heads", 1, "attention heads; divides the channels of sizes with attention", whole = true, least = 1 },
  { "attention", 16, "denoise: pictures of at most so many pixels a side have attention", whole = true, least = 0 },
  { "dropout", 0, "share of activations dropped", least = 0, below = 1 },
  { "smoothing", 0, "segmentation: share of a target that all classes have alike", least = 0, below = 1 },
  { "metrics", "none", "accuracy: measured in training, too, as in evaluation", choices = { "none", "accuracy" } },
  pictured.BATCHNORM,
}

local function output(o, graph, purpose)
  local context, x = pictured.begin(o, graph, purpose)
  if denoises(o) then
    local time = graph:input("time", { o.batch, TIME })
    local hidden = hidden_of(o)
    local layers = nn.Sequential():add(nn.Linear(TIME, hidden), "linear1"):add(nn.SiLU())
      :add(nn.Linear(hidden, hidden), "linear2"):add(nn.SiLU())
    context.time = graph:region("time", function() return context:child("time", layers, time) end)
  end
  return net(o):build(context, x), context
end

return {
  options = pictured.options(OPTIONS, { image = 32, augment = "none", remainder = "drop" }), unit = "images",
  training = { steps = 2000, rate = 1e-3, warmup = 100, schedule = "cosine", weight_decay = 0.01 },
  joins = function(o) return o.norm == "batch" and pictured.OF_BATCHNORM.joins(o) or nil end,
  crosses = function(o) return o.norm == "batch" and pictured.OF_BATCHNORM.crosses(o) or nil end,
  settle = function(o, run) return pictures.settle(o, kind_of(o), run) end,
  check = function(o)
    local widths, wrong = widths_of(o)
    if wrong then return wrong end
    local least = 2 ^ (#widths - 1)
    if o.image % least ~= 0 then
      return ("image=%d: for %d sizes it is halved %d times, but %d does not divide it"):format(o.image, #widths,
        #widths - 1, least)
    end
    for level, width in ipairs(widths) do
      if attends(o, level) and width % o.heads ~= 0 then
        return ("heads=%d does not divide the %d channels of size %d"):format(o.heads, width, level)
      end
    end
    return pictured.problem(o) or pictured.check(o, kind_of(o))
  end,

  model = function(o, graph, purpose)
    local y, context = output(o, graph, purpose)
    if not denoises(o) then return pictured.ends(o, context, y, purpose) end
    local loss, weight = graph:op("mse", y, graph:input("noise", y:shape()))
    return { loss = loss, weight = weight }
  end,

  predictor = function(o, graph)
    local y, context = output(o, graph, "prediction")
    return { outputs = denoises(o) and { noise_found = y } or { probabilities = (context:op("softmax", y)) } }
  end,

  dataset = function(o, run) return task_data(o, run.seed, pictures.dataset(o, run, kind_of(o))) end,
  evaluation = function(o, run)
    local made = pictures.evaluation(o, run, kind_of(o))
    return made and changed(made, { data = function()
      return task_data(made.o or o, run.seed + 1, made.data())
    end })
  end,
}
