-- What recipes over pictures share: their options, and the ends of one that tells classes apart.
local architecture = require "families.parts.architecture"
local cairn = require "cairn"
local decode = require "cli.base.json_decode"
local changed = require "cli.base.changed"
local described = require "families.parts.described"
local fail = require "cli.base.fail"
local files = require "cli.base.files"
local json = require "cli.base.json"
local labelled = require "cli.data.labelled"
local labels = require "families.parts.labels"
local nn = cairn.nn
local pictures = require "cli.data.pictures"

local pictured = {}

local MOST_BYTES = 2 ^ 20  -- of a config, which checkpoints keep

-- Of nets with BatchNorm.
pictured.BATCHNORM = { "batchnorm", "micro", "whose mean and variance: of each micro-batch, or of the effective " ..
  "batch, whose micro-batches are then planned as one", choices = { "micro", "effective" } }

-- Parts of a recipe whose nets have BatchNorm: whether a step's micro-batches are run as one, and why gradients of
-- micro-batches do not add up to those of one batch (cli.train.joined, `cairn verify`).
pictured.OF_BATCHNORM = {
  joins = function(o) return o.batchnorm == "effective" and "batchnorm=effective" or nil end,
  crosses = function(o)
    return o.batchnorm == "effective" and "with batchnorm=effective they are run as one batch"
      or "with batchnorm=micro each has a mean and a variance of its own"
  end,
}

-- What of the data's options does not go together; whatever the micro-batch is, where it is chosen.
function pictured.check(o, kind)
  return pictures.check(o.batch == "auto" and changed(o, { batch = 1 }) or o, kind)
end

-- The names of the classes.
local function labels_of(o)
  if o.labels ~= "" then return labelled.labels(o) end
  local list = {}
  for i = 1, o.classes do list[i] = ("class %d"):format(i - 1) end
  return list
end

-- What a config.json says of the model, where one is given; nil: options say it.
local made = {}
function pictured.model_of(o)
  if o.model == "" then return nil end
  if made.text ~= o.model then
    made = { text = o.model, a = architecture.of(o.model, o.model_name ~= "" and o.model_name or "model") }
  end
  return made.a
end

-- Rows for it, and what the recipe's other parts say of it. name: the recipe's.
pictured.MODEL = { { "model", "", "config.json of a model, or its text, instead of options" },
                   described.MODEL_NAME }

-- What the option `labels` is for the names of the first of `count` classes.
local function labels_text(names, count)
  local list = labels_of { labels = "", classes = count }
  for i = 1, math.min(count, #names) do list[i] = names[i] end
  return count > 1 and json.encode(json.array(list)) or ""
end

-- The options that are settled by the data and by a config. The classes of a model whose data are none but drawings are
-- its own.
function pictured.settled(o, kind, run)
  local found, text = {}, o.model
  if text and text ~= "" and not text:find("^%s*{") then
    text = files.read(text, "model", MOST_BYTES)
    found.model, found.model_name = text, o.model
  end
  local a = text and text ~= "" and pictured.model_of(changed(o, found)) or nil
  local of_model, drawn = a and a.options or {}, o.data == "drawings"
  if o.classes == 0 and drawn and a and a.labels then found.classes = #a.labels end
  local of_data, names = pictures.settle(changed(o, found), kind, run)
  for name, value in pairs(of_data) do found[name] = value end
  if o.labels == "" then
    local kept = a and #a.labels == found.classes and (drawn or names[1] == "0")
    found.labels = labels_text(kept and a.labels or names, found.classes)
  end
  if of_model.vocab and found.vocab then
    if found.vocab > of_model.vocab then
      fail.input(("the texts have %d tokens, the model has %d; tokens=auto takes those of its directory"):format(
        found.vocab, of_model.vocab))
    end
    found.vocab = of_model.vocab
  end
  return found
end

-- Parts of a recipe whose parameters have the names of Transformers, whose convolutions have channels second. build(o,
-- graph): makes its graph.
function pictured.of_transformers(name, build)
  return {
    names = function(o)
      local graph, rows = cairn.graph(), {}
      build(o, graph)
      for _, info in ipairs(graph:parameters()) do
        if #info.shape == 4 then rows[#rows + 1] = { info.name, info.name, true } end
      end
      graph:free()
      return rows
    end,
    unused = function(o) return (pictured.model_of(o) or { unused = {} }).unused end,
    -- That of the files, with the head and the classes that were trained.
    hf_config = function(o)
      if o.model == "" then
        fail.input(("%s: its options say what the model is, and not a config.json; --to safetensors writes its weights")
          :format(name))
      end
      local a = pictured.model_of(o)
      if (o.labels or "") == "" or table.concat(labels_of(o), "\0") == table.concat(a.labels, "\0") then
        return o.model
      end
      local config = decode(o.model, json.raw("null"))
      labels.put(config, labels_of(o))
      for i, class in ipairs(config.architectures or {}) do
        config.architectures[i] = class:gsub("Model$", "ForImageClassification")
      end
      return config
    end,
    -- The head, where files have none, or one over other classes.
    fresh = function(o)
      local a = pictured.model_of(o)
      return o.labels and a and (a.headless or #a.labels ~= o.classes) and { "classifier.*" } or {}
    end,
  }
end

-- Option rows: the micro-batch, the recipe's own, those of the data, of which `defaults` changes some. more: rows of
-- another kind of data (optional).
function pictured.options(own, defaults, more)
  local rows = { { "batch", 32, "pictures of a micro-batch", whole = true, least = 1 } }
  for _, list in ipairs { own, pictures.options(defaults), more or {} } do
    for _, row in ipairs(list) do rows[#rows + 1] = row end
  end
  return rows
end

-- What a graph's modules are built into, and its pictures.
function pictured.begin(o, graph, purpose)
  local dims = { o.batch, o.image, o.image, o.channels }
  return nn.context(graph, purpose ~= "evaluation" and purpose ~= "prediction"), graph:input("input", dims)
end

-- Loss, weight and metrics of logits[.., classes] against the input `target`, which has all dimensions but the last.
-- mixed: each target is one of two.
function pictured.ends(o, context, logits, purpose, mixed)
  local graph, dims = context.graph, logits:shape()
  dims[#dims] = nil
  local target = graph:input("target", dims, "i32")
  local function loss_of(classes, weights)
    return context:op("cross_entropy", logits, classes, weights or false,
      { smoothing = o.smoothing > 0 and o.smoothing or nil })
  end
  local loss, weight
  if mixed then
    local share = graph:input("share", dims)
    local rest = context:op("add", share * -1, (context:op("equal", share, share)))
    loss, weight = loss_of(target, share)
    local loss2, weight2 = loss_of(graph:input("target2", dims, "i32"), rest)
    loss, weight = loss + loss2, weight + weight2
  else
    loss, weight = loss_of(target)
  end
  local metrics
  if purpose == "evaluation" or o.metrics == "accuracy" then
    metrics = { accuracy = nn.accuracy(context:op("accuracy", logits, target)) }
    if o.classes > 5 then metrics.top5 = nn.accuracy(context:op("accuracy", logits, target, { top = 5 })) end
  end
  return { loss = loss, weight = weight, metrics = metrics, output = logits }
end

-- What of batchnorm does not go together.
function pictured.problem(o)
  if o.batchnorm == "effective" and o.batch == "auto" then
    return "batch=auto does not go with batchnorm=effective, by which a step's micro-batches are planned as one"
  end
end

local OF_ENDS = {
  { "smoothing", 0, "share of a target that all classes have alike", least = 0, below = 1 },
  { "labels", "", "names of the classes, as cat,dog; those of the data or of config.json if there are none" },
  { "metrics", "none", "accuracy: measured in training, too, as in evaluation", choices = { "none", "accuracy" } },
}

-- A recipe that tells classes apart. spec: options (rows of its own), defaults (of the data's), training, net(o) (a
-- module from pictures to logits), check(o), name (of a recipe whose parameters have the names of
-- Transformers), and further parts of a recipe.
function pictured.classifier(spec)
  local own = {}
  for _, list in ipairs { spec.options, OF_ENDS, spec.name and pictured.MODEL or {} } do
    for _, row in ipairs(list) do own[#own + 1] = row end
  end
  local recipe = {
    options = pictured.options(own, spec.defaults), training = spec.training,
    settle = function(o, run) return pictured.settled(o, nil, run) end, unit = "images",
    check = function(o)
      local count = #labels_of(o)
      if o.labels ~= "" and count ~= o.classes then
        return ("labels=%s: %d names for %d classes"):format(o.labels, count, o.classes)
      end
      return pictured.problem(o) or spec.check and spec.check(o) or pictured.check(o)
    end,
    model = function(o, graph, purpose)
      local context, x = pictured.begin(o, graph, purpose)
      return pictured.ends(o, context, spec.net(o):build(context, x), purpose,
        purpose ~= "evaluation" and pictures.mixes(o))
    end,
    predictor = function(o, graph)
      local context, x = pictured.begin(o, graph, "prediction")
      local y = spec.net(o):build(context, x)
      return {
        outputs = { probabilities = (context:op("softmax", y)) }, inputs = { pictures.field(o, "input") },
        answers = { { kind = "label", field = "label", probabilities = "probabilities", output = "probabilities",
                      labels = labels_of(o) } },
      }
    end,
    dataset = function(o, run) return pictures.dataset(o, run) end,
    evaluation = function(o, run) return pictures.evaluation(o, run) end,
  }
  local of_files = spec.name and pictured.of_transformers(spec.name,
    function(o, graph) return recipe.model(o, graph, "evaluation") end)
  for _, parts in ipairs { of_files or {}, spec.parts or {} } do
    for name, part in pairs(parts) do recipe[name] = part end
  end
  return recipe
end

return pictured
