-- Pictures and what is learned of them, for recipes: decoded and augmented by the library on worker threads, while the
-- model computes. What a micro-batch holds is a pure function of the seed and its number.
--
-- A recipe splices the rows of `pictures.options` into its own, and passes on what it is called with:
--
--   options = a list with the rows of pictures.options() { name, default, words, ... }, a fresh list at each call
--   settle  = function(o, run) return pictures.settle(o, kind, run) end
--                                                         classes = N, where classes=0 asks for those of the data
--   check   = function(o) return pictures.check(o, kind) end                -- what does not go together, or nil
--   dataset = function(o, run) return pictures.dataset(o, run, kind) end
--   evaluation = function(o, run) return pictures.evaluation(o, run, kind) end
--
-- kind, and the arrays that batch(index) gives (inputs of the graph by these names and shapes):
--   "class" (or nil)  input f32[batch, image, image, channels], target i32[batch]; -100: the row only fills up the last
--                     micro-batch. Where pictures.mixes(o) (mixup or cutmix, in training only): also target2 i32[batch]
--                     and share f32[batch]; the loss is share * of target + (1 - share) * of target2.
--                     pictures.dataset gives them always where pictures.mixes(o); pictures.evaluation never does.
--   "mask"            input, and target i32[batch, image, image]: the class of each pixel, 0: background; of drawings.
--                     settle counts the background among the classes.
--   "text"            input, text i32[batch, seq] (padded with 0), text_length i32[batch] (tokens of each, at least 1,
--                     the last of which ends the text): of drawings (a drawing's description), pairs: and tar:. Only
--                     complete micro-batches. Recipes splice pictures.text_options() in, too (seq, tokenizer); settle
--                     then gives vocab, where o has such an option.
--   "plain"           input alone; only complete micro-batches.
-- Options that the rows bring: data, image, channels, augment, crop_scale, jitter, mixup, cutmix, normalise, classes,
-- samples, evaluate, eval_samples, eval_fraction, remainder, workers, bad. `batch` is the recipe's own.
-- pictures.options { image = 32 } changes defaults. channels: 3, or 1 (grey). What comes out has a mean
-- of about 0 and a deviation of about 1.
local ffi = require "ffi"
local cairn = require "cairn"
local content = require "cli.data.content"
local fail = require "cli.base.fail"
local numbers = require "cairn.numbers"
local texts = require "cli.data.picture_texts"

local pictures = { text_options = texts.options }

local SMALL = 64  -- pixels a side, up to which pictures are cropped as CIFAR's are, not as ImageNet's
local DRAWINGS, HELD_OUT_DRAWINGS, SHAPES = 50000, 1000, 10
local MOST_NUMBERS = 2 ^ 28  -- of a micro-batch

local ROWS = {
  { "data", "drawings", "drawings (labelled shapes, made from the seed), mnist:DIR, cifar10:DIR, cifar100:DIR, " ..
    "folder:DIR (a folder of pictures for each class), tar:FILE,... or pairs:FILE (JSONL)" },
  { "image", 32, "pixels of a picture's side", whole = true, least = 8, most = 16384 },
  { "channels", 3, "3, or 1: grey", whole = true, least = 1, most = 3 },
  { "augment", "flip", "none; flip; crop: moved by up to an eighth, too; standard: random parts, resized; randaugment",
    choices = { "none", "flip", "crop", "standard", "randaugment" } },
  { "crop_scale", 0, "least share of a picture that augment=standard takes; 0: 0.08, of drawings 0.6", least = 0,
    most = 1 },
  { "jitter", 0, "of brightness, contrast and saturation, and a quarter of it of hue", least = 0, most = 1 },
  { "mixup", 0, "of Beta(x, x): pictures are mixed with each other; 0: none", least = 0, most = 1000 },
  { "cutmix", 0, "of Beta(x, x): parts of pictures are put into each other; 0: none", least = 0, most = 1000 },
  { "normalise", "auto", "mean and deviation that are taken out; auto: those that are usual for the data",
    choices = { "auto", "imagenet", "cifar10", "cifar100", "mnist", "half", "none" } },
  { "classes", 0, "0: those of the data; of drawings 2 to 10, 0: 10", whole = true, least = 0, most = 2 ^ 20 },
  { "samples", 0, "pictures at most; 0: all, of drawings 50000", whole = true, least = 0, most = 2 ^ 39 },
  { "evaluate", "auto", "auto: where the data have pictures to evaluate with", choices = { "auto", "none" } },
  { "eval_samples", 0, "pictures to evaluate with, at most; 0: all, of drawings 1000", whole = true, least = 0,
    most = 2 ^ 39 },
  { "eval_fraction", 0, "share of data without a part of their own to evaluate with, which is not trained with",
    least = 0, below = 1 },
  { "remainder", "pad", "an epoch's last micro-batch, too small: padded, of its own size, dropped",
    choices = { "pad", "own", "drop" } },
  { "workers", 2, "threads that decode pictures ahead", whole = true, least = 0, most = 64 },
  { "bad", "error", "a file that is no valid picture: ends the run, or is skipped and counted",
    choices = { "error", "skip" } },
}

-- A fresh list of option rows; defaults: other defaults by name.
function pictures.options(defaults)
  local list = {}
  for i, row in ipairs(ROWS) do
    local own = {}
    for key, value in pairs(row) do own[key] = value end
    if defaults and defaults[row[1]] ~= nil then own[2] = defaults[row[1]] end
    list[i] = own
  end
  return list
end

local HALF = { { 0.5, 0.5, 0.5 }, { 0.25, 0.25, 0.25 } }
local NORMS = {
  imagenet = { { 0.485, 0.456, 0.406 }, { 0.229, 0.224, 0.225 } },
  cifar10 = { { 0.4914, 0.4822, 0.4465 }, { 0.2470, 0.2435, 0.2616 } },
  cifar100 = { { 0.5071, 0.4865, 0.4409 }, { 0.2673, 0.2564, 0.2762 } },
  mnist = { { 0.1307, 0.1307, 0.1307 }, { 0.3081, 0.3081, 0.3081 } },
  half = HALF, drawings = HALF, none = { { 0, 0, 0 }, { 1, 1, 1 } },
}

local function kind_of(o) return o.data:match("^(%w+):") or o.data end

local function norm_of(o) return NORMS[o.normalise == "auto" and kind_of(o) or o.normalise] or NORMS.imagenet end

-- What is done to a picture to train with, by `augment`.
local function training_of(o)
  local ways = { none = {}, flip = { flip = 0.5 } }
  ways.crop = { flip = 0.5, crop = "padded", padding = math.floor(o.image / 8 + 0.5) }
  local least = o.crop_scale > 0 and o.crop_scale or (o.data == "drawings" and 0.6 or 0.08)
  ways.standard = { flip = 0.5, crop = "random-resized", scale = { least, 1 } }
  ways.randaugment = o.image <= SMALL and ways.crop or ways.standard
  local way = ways[o.augment]
  way.randaugment, way.magnitude = o.augment == "randaugment" and 2 or 0, 9
  way.brightness, way.contrast, way.saturation, way.hue = o.jitter, o.jitter, o.jitter, o.jitter / 4
  way.mixup, way.cutmix, way.shuffle = o.mixup, o.cutmix, true
  return way
end

-- And to evaluate with: as torchvision's references do, the middle of a larger one where random parts were learned.
local function evaluation_of(o)
  local parts = o.augment == "standard" or o.augment == "randaugment"
  return { resize = parts and o.image > SMALL and o.data ~= "drawings" and 256 / 224 or 1 }
end

-- Opened pictures, or nil, err.
local function try_open(o, seed, kind, test)
  local made = test and evaluation_of(o) or training_of(o)
  local norm = norm_of(o)
  made.data, made.width, made.height, made.channels, made.seed = o.data, o.image, o.image, o.channels, seed
  made.mean, made.deviation, made.test, made.held_out = norm[1], norm[2], test, o.eval_fraction
  made.workers, made.ahead = o.workers, o.workers > 0 and 1 or 0
  made.bad = o.bad == "skip" and (kind == "text" or kind == "plain") and "replace" or o.bad
  made.most = test and o.eval_samples or o.samples
  if o.data == "drawings" then
    made.held_out = 0
    if made.most == 0 then made.most = test and HELD_OUT_DRAWINGS or DRAWINGS end
    made.classes = o.classes > 0 and o.classes - (kind == "mask" and 1 or 0) or 0
    if (o.model or "") ~= "" then made.classes = math.min(made.classes, SHAPES) end  -- it may know more classes
  end
  return cairn.pictures(made)
end

local function opened(what, made, err)
  if not made and err.status == "UNSUPPORTED" then fail.input(what .. ": " .. tostring(err)) end
  return fail.check(what, made, err)
end

function pictures.mixes(o) return o.mixup > 0 or o.cutmix > 0 end

-- Option values that the data say, and the names of their classes.
function pictures.settle(o, kind, run)
  local found, names = {}, {}
  if o.data == "drawings" then
    local more = kind == "mask" and 1 or 0
    found.classes = o.classes > 0 and o.classes or SHAPES + more
  end
  if o.data ~= "drawings" or kind == nil then
    local made = opened("data", try_open(o, 0, kind, false))
    local info = fail.check("data", made:info())
    for i = 1, info.classes do names[i] = fail.check("data", made:class(i - 1)) end
    made:free()
    if info.classes == 0 and (kind == nil or kind == "class") then
      fail.input(("data=%s: the pictures have no classes"):format(o.data))
    end
    if o.classes > 0 and o.classes < info.classes then
      fail.input(("classes=%.0f: data=%s has %d classes; leave classes out, or give at least as many"):format(o.classes,
        o.data, info.classes))
    end
    found.classes = o.classes > 0 and o.classes or info.classes
  end
  if o.vocab ~= nil and kind == "text" then found.vocab = texts.vocabulary(o, run or {}) end
  return found, names
end

-- What does not go together, in words; nil: nothing.
function pictures.check(o, kind)
  local count = o.batch * o.image * o.image * o.channels
  if o.channels == 2 then return "channels=2: a picture has 3, or 1: grey" end
  if count > MOST_NUMBERS then
    return ("batch=%.0f and image=%.0f make %.0f numbers of a micro-batch; at most %.0f"):format(o.batch, o.image,
      count, MOST_NUMBERS)
  end
  if o.data == "drawings" and o.eval_fraction > 0 then
    return "eval_fraction: of data=drawings others are drawn to evaluate with: give eval_samples"
  end
  if pictures.mixes(o) and kind ~= nil and kind ~= "class" then
    return "mixup and cutmix mix classes, which are not learned here"
  end
  if kind ~= "mask" then return nil end
  if o.data ~= "drawings" then return ("data=%s has no masks; data=drawings has"):format(o.data) end
  if o.augment ~= "none" or o.jitter > 0 then
    return "masks fit pictures as they are drawn: give augment=none and jitter=0"
  end
end

-- How a picture that something is asked of becomes the input `name` (cli.data.fields).
function pictures.field(o, name)
  local norm = norm_of(o)
  return { kind = "picture", field = "image", input = name, resize = evaluation_of(o).resize, mean = norm[1],
           deviation = norm[2] }
end

-- Names and layout of what a kind reads: buffer of the library, dtype, numbers of a row.
local function layout_of(o, kind, mixes)
  local pixels = o.image * o.image
  local rows = { { "input", "pixels", "f32", pixels * o.channels } }
  if kind == nil or kind == "class" then rows[2] = { "target", "labels", "i32", 1 } end
  if kind == "mask" then rows[2] = { "target", "masks", "i32", pixels } end
  if mixes then
    rows[3], rows[4] = { "target2", "others", "i32", 1 }, { "share", "shares", "f32", 1 }
  end
  return rows
end

-- Arrays of `count` rows by input name, and the same by the library's names.
local function buffers(layout, count)
  local arrays, to = {}, {}
  for _, row in ipairs(layout) do
    arrays[row[1]] = numbers.buffer(row[3], count * row[4])
    to[row[2]] = arrays[row[1]]
  end
  return arrays, to
end

-- A function that counts the pictures that could not be read, and says so at the first, second, fourth ...; nil: such
-- a picture ends the run.
local function watch_bad(made, o, note)
  if o.bad ~= "skip" then return end
  local told = 0
  return function()
    local bad = fail.check("data", made:info()).bad
    if bad >= math.max(1, 2 * told) then
      told = bad
      note(("note: data: pictures that could not be read, and are skipped: %d so far"):format(bad))
    end
    return bad
  end
end

-- A dataset of opened pictures. how: layout, complete (only micro-batches without empty rows), own (the last one of an
-- epoch has a size of its own), text (cli.data.picture_texts), content, note.
local function dataset_of(made, o, how)
  local count = fail.check("data", made:info()).count
  local all, rest = math.ceil(count / o.batch), count % o.batch
  local batches = how.complete and math.floor(count / o.batch) or all
  if batches == 0 then
    fail.input(("data=%s: %.0f pictures are fewer than batch=%.0f, and an incomplete micro-batch is left out"):format(
      o.data, count, o.batch))
  end
  local arrays, to = buffers(how.layout, o.batch)
  local own = how.own and rest > 0 and buffers(how.layout, rest)
  if how.text then how.text.buffers(arrays, to) end
  local skipped = watch_bad(made, o, how.note)
  return {
    batches = batches, skipped = skipped, content = how.content, tokenizer = how.text and how.text.tokenizer,
    remainders = own and { { name = "remainder", changes = { batch = rest } } } or nil,
    batch = function(index)
      local number = math.floor(index / batches) * all + index % batches
      local rows = opened(("micro-batch %.0f"):format(index), made:batch(number, o.batch, to))
      if skipped then skipped() end
      if how.text then how.text.fill(arrays, to, made) end
      if not own or rows == o.batch then return arrays, rows, nil, rows end
      for _, row in ipairs(how.layout) do
        ffi.copy(own[row[1]], arrays[row[1]], rows * row[4] * numbers.SIZES[row[3]])
      end
      return own, rows, "remainder", rows
    end,
  }
end

local function whole_batches(kind) return kind == "text" or kind == "plain" end

-- What fills a kind's texts, where it has some.
local function texts_of(made, o, run, kind)
  if kind ~= "text" then return nil end
  if not fail.check("data", made:info()).texts then
    fail.input(("data=%s: the pictures have no texts; wanted: drawings, pairs:FILE, or tar:FILE with .txt or .json")
      :format(o.data))
  end
  return texts.filler(o, run)
end

local function content_of(made) return fail.check("data", made:content()) end

local function note_of(run) return run.note or function() end end

function pictures.dataset(o, run, kind)
  local made = opened("data", try_open(o, run.seed, kind, false))
  local said = content.told({ path = o.data, content = content_of(made) }, run, "data")
  return dataset_of(made, o, { layout = layout_of(o, kind, pictures.mixes(o)), note = note_of(run),
    complete = whole_batches(kind) or o.remainder == "drop", own = o.remainder == "own",
    text = texts_of(made, o, run, kind), content = said.content })
end

-- nil: the data have nothing to evaluate with, and no share of them is held out.
function pictures.evaluation(o, run, kind)
  if o.evaluate == "none" then return nil end
  local found, err = try_open(o, run.seed, kind, true)
  if not found and err.status == "NOT_FOUND" and o.eval_fraction == 0 then return nil end
  opened("data", found, err):free()
  local own = {}
  for key, value in pairs(o) do own[key] = value end
  own.dropout, own.mixup, own.cutmix = o.dropout and 0, 0, 0
  return { o = own, data = function()
    local made = opened("data", try_open(own, run.seed, kind, true))
    return dataset_of(made, own, { layout = layout_of(own, kind, false), note = note_of(run),
      complete = whole_batches(kind), text = texts_of(made, own, run, kind),
      content = o.eval_fraction > 0 and content_of(made) or nil })
  end }
end

return pictures
