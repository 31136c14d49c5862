-- An encoder of one of the families that `cairn models` lists, as its config.json describes it: it finds masked
-- tokens, tells texts apart, tags words, or brings texts that belong together near each other. A directory with that
-- file in the place of a recipe is this recipe with the directory's config, weights and tokenizer. Parameters have
-- Hugging Face's names.

local decode = require "cli.base.json_decode"
local described = require "families.parts.described"
local encoder_of = require "families.parts.encoder"
local f1 = require "cli.train.f1"
local fail = require "cli.base.fail"
local json = require "cli.base.json"
local labels_of = require("cli.data.labelled").labels
local masked = require "cli.data.masked"
local nn = require("cairn").nn
local sequences = require "cli.data.sequences"
local whole_batch = require "families.parts.whole_batch"

local LONGEST = 512  -- of a sample, where nobody says
local COLUMNS = { mlm = { "", "" }, classify = { "text", "label" }, tag = { "words", "tags" }, embed = { "text", "" } }

local architecture_of = described.by("encoder")

-- What samples of a task are: see cli.data.sequences.
local function form_of(o)
  local a = architecture_of(o)
  return { kind = o.task, paired = o.task == "classify" and o.pair ~= "" and a.names.types ~= nil,
           shares = (o.task == "embed" and o.pooling or a.heads_by_task[o.task].pooling) == "mean" }
end

local function shape_of(o, batch)
  local lines = o.task == "mlm" and o.samples == "lines" and o.data ~= "random"
  return { batch = batch or o.batch, seq = o.seq, padded = o.task ~= "mlm" or lines, paired = form_of(o).paired }
end

local function has_labels(task) return task == "classify" or task == "tag" end
local function count_of(o) return has_labels(o.task) and #labels_of(o) or nil end

-- Of tags, the number of the one that says that a word has none.
local function none_of(o)
  for i, label in ipairs(o.task == "tag" and labels_of(o) or {}) do
    if label == "O" then return i end
  end
end

local function predictor(o, graph)
  local a, context, shape = architecture_of(o), nn.context(graph, false), shape_of(o)
  local x, table_of = encoder_of.body(a, context, shape, o.segments)
  if o.task == "embed" then
    return {
      outputs = { embedding = encoder_of.embedded(a, context, x, o.pooling, shape) },
      inputs = { { kind = "sequence", field = o.text, tokens = "tokens", lengths = "lengths",
                   share = form_of(o).shares and "share" or nil } },
      answers = { { kind = "array", field = "embedding", output = "embedding" } },
    }
  end
  local y = encoder_of.scores(a, context, x, table_of, o.task, shape, count_of(o))
  if o.task == "tag" then
    return {
      outputs = { scores = context:op("reshape", y, { shape = { o.batch, o.seq, count_of(o) } }) },
      inputs = { { kind = "words", field = o.text, tokens = "tokens", lengths = "lengths" } },
      answers = { { kind = "tags", field = o.label, output = "scores", tokens = "tokens", labels = labels_of(o) } },
    }
  end
  return {
    outputs = { probabilities = context:op("softmax", y) },
    inputs = { { kind = "sequence", field = o.text, pair = o.pair ~= "" and o.pair or nil, tokens = "tokens",
                 lengths = "lengths", types = shape.paired and "types" or nil,
                 share = form_of(o).shares and "share" or nil } },
    answers = { { kind = "label", field = "label", probabilities = "probabilities", output = "probabilities",
                  labels = labels_of(o) } },
  }
end

-- The loss of texts that belong together, two after each other: each is told from all others of its side.
local function paired_loss(o, graph, context, measured)
  local a, shape = architecture_of(o), shape_of(o, 2 * o.batch)
  local x = encoder_of.body(a, context, shape, o.segments)
  local y = encoder_of.embedded(a, context, x, o.pooling, shape)
  y = graph:op("reshape", y, { shape = { o.batch, 2 * a.width } })
  local function side(number)
    local rows = graph:op("slice", y, { axis = 1, begin = number * a.width, ["end"] = (number + 1) * a.width })
    return whole_batch.of(o, graph, rows)
  end
  local texts, others = side(0), side(1)
  local loss, weight, metrics = nn.ContrastiveCriterion { scale = 1 / o.temperature, learned = false,
    accuracy = measured }:build(context, texts, others)
  return { loss = loss, weight = weight, metrics = metrics }
end

local encoder
encoder = {
  options = {
    described.MODEL,
    { "task", "auto", "mlm: find masked tokens; classify: texts; tag: words; embed: texts that belong together, " ..
      "for retrieval; auto: as config.json's architectures say",
      choices = { "auto", "mlm", "classify", "tag", "embed" } },
    { "data", "", "mlm: a text; classify, embed: a table (.csv, .tsv, .jsonl); tag: .jsonl, or lines of a word and " ..
      "its tag; or random" },
    { "samples", "windows", "what mlm takes of a text: windows of seq tokens, or its lines",
      choices = { "windows", "lines" } },
    { "text", "", "the column of texts (text), or of arrays of words (words)" },
    { "pair", "", "classify: the column of second texts, where there are pairs; embed: that of what belongs to a " ..
      "text (pair)" },
    { "pooling", "mean", "embed: a text is the mean of its tokens, or its first token", choices = { "mean", "cls" } },
    { "temperature", 0.05, "embed: similarities are divided by this", above = 0 },
    { "effective", true, "embed: the loss is over all pairs of a step's micro-batches, each of which is computed " ..
      "twice; false: of each micro-batch alone" },
    { "label", "", "the column of labels (label), or of arrays of tags (tags)" },
    { "labels", "", "names of the labels, as spam,ham; those of config.json or of the data if there are none" },
    { "seq", 0, "most tokens of a sample; 0: max_position_embeddings, at most " .. LONGEST, whole = true, least = 0 },
    { "batch", 8, "samples of a micro-batch", whole = true, least = 1 },
    { "mask_rate", 0.15, "mlm: share of a sample's tokens to be found", above = 0, most = 1 },
    { "mask_share", 0.8, "of these: share that the mask replaces", least = 0, most = 1 },
    { "random_share", 0.1, "and share that a random token replaces", least = 0, most = 1 },
    { "mask_token", -1, "number of the mask; -1: the tokenizer's [MASK] or <mask>", whole = true, least = -1 },
    { "segments", "auto", "checkpointed by hand: block, sqrt, or blocks of a segment; auto: the planner decides" },
    { "remainder", "pad", "an epoch's last micro-batch, too small: padded, of its own size, dropped; embed: dropped",
      choices = { "pad", "own", "drop" } },
    { "metrics", "none", "accuracy: measured in training, too, as in evaluation", choices = { "none", "accuracy" } },
    { "eval_data", "", "file to evaluate with" },
    { "eval_fraction", 0, "or this share of data, which is not trained with", least = 0, below = 1 },
    { "tokens", "auto", "kind of tokens", choices = { "auto", "bytes" } },
    { "vocab", 0, "tokens that random ones are drawn from; 0: the model's", whole = true, least = 0 },
    { "dropout", 0, "share of activations dropped", least = 0, below = 1 },
    { "frozen", "", "parameters whose names match are not trained, as 'h.*'" },
    described.TIED,
    described.MODEL_NAME,
  },
  training = { steps = 100, rate = 5e-5, weight_decay = 0.01, clip = 1.0 },
  no_texts = "it is an encoder, which reads in both directions",

  settle = function(o)
    local found, a = described.settled(o, architecture_of)
    local task = o.task ~= "auto" and o.task or a.own_task
    if not task then
      fail.usage(("%s has no head that is known: task=mlm, classify, tag or embed says which one to train")
        :format(found.model_name))
    end
    encoder.blocks = a.blocks
    encoder.predictor = task ~= "mlm" and predictor or nil
    local columns, labels = COLUMNS[task], o.labels
    found.task, found.seq = task, o.seq > 0 and o.seq or math.min(a.positions, LONGEST)
    found.text, found.label = o.text ~= "" and o.text or columns[1], o.label ~= "" and o.label or columns[2]
    if task == "embed" and o.pair == "" then found.pair = "pair" end
    if not has_labels(task) then return found end
    if labels == "" and task == a.own_task then
      labels = json.encode(json.array(a.labels))
    elseif labels == "" and o.data ~= "" and o.data ~= "random" then
      labels = sequences.labels({ data = o.data, text = found.text, label = found.label, pair = o.pair },
        { kind = task })
    end
    found.labels = labels
    if labels ~= "" then labels_of(found) end
    return found
  end,

  check = function(o)
    local a = architecture_of(o)
    if a.names.positions and o.seq > a.positions then
      return ("seq=%d is more than the model's %d positions"):format(o.seq, a.positions)
    end
    if o.vocab > a.vocab then return ("vocab=%d is more than the model's %d tokens"):format(o.vocab, a.vocab) end
    if o.mask_token >= a.vocab then
      return ("mask_token=%d; the model has %d tokens, from 0"):format(o.mask_token, a.vocab)
    end
    if o.mask_share + o.random_share > 1 then
      return ("mask_share=%g and random_share=%g are more than 1"):format(o.mask_share, o.random_share)
    end
    if o.task == "embed" then
      if o.batch ~= "auto" and o.batch < 2 then
        return ("batch=%d: a text is told from those of others; give batch=2 or more"):format(o.batch)
      end
    elseif o.pair ~= "" and (o.task ~= "classify" or a.names.types and a.types < 2) then
      return ("pair=%s: goes with task=classify, and a model with two types of tokens"):format(o.pair)
    end
    return select(2, nn.segment_size(o.segments, a.layers))
  end,

  crosses = function(o) return o.task == "embed" and whole_batch.crosses(o) or nil end,

  model = function(o, graph, purpose)
    local a, context, shape = architecture_of(o), nn.context(graph, true), shape_of(o)
    local measured = purpose == "evaluation" or o.metrics == "accuracy"
    if o.task == "embed" then return paired_loss(o, graph, context, measured) end
    local x, table_of = encoder_of.body(a, context, shape, o.segments)
    local criterion = nn.CrossEntropyCriterion { accuracy = measured }
    if o.task == "mlm" then
      local chosen = graph:input("chosen", { o.batch * masked.most(o) }, "i32")
      local y = encoder_of.scores(a, context, x, table_of, o.task, shape, nil, chosen)
      local targets = graph:input("targets", { o.batch * masked.most(o) }, "i32")
      local loss, weight, metrics = criterion:build(context, y, targets)
      metrics = metrics or {}
      metrics.perplexity = { of = "loss", apply = math.exp, better = "lower" }
      return { loss = loss, weight = weight, metrics = metrics }
    end
    local y = encoder_of.scores(a, context, x, table_of, o.task, shape, count_of(o))
    local targets = graph:input("target", { o.batch * (o.task == "tag" and o.seq or 1) }, "i32")
    local loss, weight, metrics = criterion:build(context, y, targets)
    if purpose == "evaluation" then
      for name, metric in pairs(f1.metrics(y, count_of(o), none_of(o))) do metrics[name] = metric end
    end
    return { loss = loss, weight = weight, metrics = metrics }
  end,

  -- Scores of the tokens numbered position[count] of tokens[1, seq], of which lengths[1] are there; of a classifier,
  -- those of the text.
  generator = function(o, graph, count)
    local a, context = architecture_of(o), nn.context(graph, false)
    local shape = { batch = 1, seq = o.seq, padded = true }
    local x, table_of = encoder_of.body(a, context, shape, o.segments)
    if o.task == "embed" then
      return { outputs = { graph:name(encoder_of.embedded(a, context, x, o.pooling, shape), "logits") } }
    end
    local position = o.task ~= "classify" and graph:input("position", { count or 1 }, "i32") or nil
    local y = encoder_of.scores(a, context, x, table_of, o.task, shape, count_of(o), position)
    return { outputs = { graph:name(y, "logits") } }
  end,

  -- That of the files, with the head and the labels that were trained.
  hf_config = function(o)
    local a = architecture_of(o)
    if o.task == a.own_task and (o.task == "mlm" or table.concat(labels_of(o), "\0") == table.concat(a.labels, "\0"))
    then
      return o.model
    end
    local config = decode(o.model, json.raw("null"))
    config.architectures, config.tie_word_embeddings = { a.class .. encoder_of.CLASSES[o.task] }, a.tied
    config.id2label, config.label2id, config.num_labels = nil, nil, nil
    if has_labels(o.task) then
      config.id2label, config.label2id = {}, {}
      for i, label in ipairs(labels_of(o)) do
        config.id2label[tostring(i - 1)], config.label2id[label] = label, i - 1
      end
    end
    return config
  end,

  fresh = function(o) return encoder_of.fresh(architecture_of(o), o.task) end,
  unused = function(o) return encoder_of.unused(architecture_of(o), o.task) end,
  frozen = function(o) return o.frozen end,

  dataset = function(o, run)
    if o.task == "mlm" then return masked.dataset(o, run) end
    return sequences.dataset(o, run, form_of(o))
  end,

  evaluation = function(o, run)
    if o.task == "mlm" then return masked.evaluation(o, run) end
    return sequences.evaluation(o, run, form_of(o))
  end,
}
return encoder
