-- A residual network (He et al., 2015) that tells pictures apart. Its stride is in the 3 x 3 convolution of a
-- bottleneck, as PyTorch has it; parameters have the names of Transformers.
local nn = require("cairn").nn
local pictured = require "families.parts.pictured"

local DEPTHS = {
  [18] = { 2, 2, 2, 2 }, [34] = { 3, 4, 6, 3 },
  [50] = { 3, 4, 6, 3, bottleneck = true }, [101] = { 3, 4, 23, 3, bottleneck = true },
  [152] = { 3, 8, 36, 3, bottleneck = true },
}

local init = nn.init.kaimingNormal("relu", "fan_out")

-- A convolution without bias and its BatchNorm, then relu if it is asked for. start: of the norm's weight.
local function conv(inputs, outputs, kernel, stride, relu, start)
  local net = nn.Sequential()
    :add(nn.Conv2d(inputs, outputs, kernel, { stride = stride, padding = math.floor(kernel / 2), bias = false,
                                              init = init }), "convolution")
    :add(nn.BatchNorm(outputs, { start = start }), "normalization")
  return relu and net:add(nn.ReLU()) or net
end

-- relu(x + what some convolutions make of it), where a change of shape takes one of its own.
local function block(o, shape, inputs, outputs, stride)
  local path, last = nn.Sequential(), o.zero_gamma and 0 or nil
  if shape.bottleneck then
    local narrow, first = outputs / 4, shape.early_stride and stride or 1
    path:add(conv(inputs, narrow, 1, first, true), "0"):add(conv(narrow, narrow, 3, stride / first, true), "1")
      :add(conv(narrow, outputs, 1, 1, false, last), "2")
  else
    path:add(conv(inputs, outputs, 3, stride, true), "0"):add(conv(outputs, outputs, 3, 1, false, last), "1")
  end
  local same = stride == 1 and inputs == outputs
  return nn.Sequential()
    :add(nn.ConcatTable():add(path, "layer")
      :add(same and nn.Identity() or conv(inputs, outputs, 1, stride), "shortcut"), "")
    :add(nn.CAddTable()):add(nn.ReLU())
end

-- {small (its stem), width (of the stem), depths, widths (of stages), bottleneck, first_stride (of the first stage),
-- early_stride (in the first convolution of a bottleneck)}.
local function shape_of(o)
  local a = pictured.model_of(o)
  if a then return a end
  local depths, widths = DEPTHS[o.depth], {}
  for stage = 1, 4 do widths[stage] = o.width * 2 ^ (stage - 1) * (depths.bottleneck and 4 or 1) end
  return { small = o.stem == "cifar" or o.stem == "auto" and o.image < 64, width = o.width, depths = depths,
           widths = widths, bottleneck = depths.bottleneck, first_stride = 1 }
end

local function net(o)
  local shape = shape_of(o)
  local small, width = shape.small, shape.width
  local made = nn.Sequential()
  local stem = nn.Sequential():add(conv(o.channels, width, small and 3 or 7, small and 1 or 2, true),
    "resnet.embedder.embedder")
  if not small then stem:add(nn.MaxPool2d(3, { stride = 2, padding = 1 })) end
  made:add(nn.Region("stem", nil, stem), "")
  local inputs = width
  for stage, outputs in ipairs(shape.widths) do
    local blocks = nn.Sequential()
    for i = 1, shape.depths[stage] do
      local one = block(o, shape, inputs, outputs, i > 1 and 1 or stage > 1 and 2 or shape.first_stride)
      blocks:add(nn.Region("b" .. i - 1, nil, one), tostring(i - 1))
      inputs = outputs
    end
    made:add(nn.Region("s" .. stage, nil, blocks), ("resnet.encoder.stages.%d.layers"):format(stage - 1))
  end
  return made:add(nn.GlobalAvgPool()):add(nn.Linear(inputs, o.classes), "classifier.1")
end

return pictured.classifier {
  options = {
    { "depth", 18, "layers with weights", whole = true, choices = { 18, 34, 50, 101, 152 } },
    { "stem", "auto", "how it begins: cifar, with a 3 x 3 convolution; imagenet, with one of 7 x 7 and a pool, both " ..
      "of stride 2; auto: cifar below 64 pixels", choices = { "auto", "cifar", "imagenet" } },
    { "width", 64, "channels of the first stage", whole = true, least = 4 },
    { "zero_gamma", true, "whether the last norm of each block begins at 0, so that blocks begin as the identity" },
    pictured.BATCHNORM,
  },
  defaults = { image = 32, remainder = "drop" },
  training = { steps = 2000, rate = 2e-3, warmup = 100, schedule = "cosine", weight_decay = 0.05 },
  net = net, name = "resnet", parts = pictured.OF_BATCHNORM,
}
