-- Adapters, as options of every recipe: small matrices that learn in place of the weights of a model, which are frozen.
-- Every graph that a part of a recipe builds has the same ones, with dropout where it trains.
local cairn = require "cairn"
local fail = require "cli.base.fail"
local json = require "cli.base.json"
local parameters = require "cli.recipe.parameters"

local adapters = {}

local WHERE = "patterns of modules, as '*_proj', with commas between them"
adapters.options = {
  { "lora", 0, "rank of adapters: small matrices that learn, while all else is frozen; 0: none", whole = true,
    least = 0, most = 65536 },
  { "lora_alpha", 0, "adapters are scaled by it / rank; 0: as lora", least = 0, most = 1e9 },
  { "lora_dropout", 0, "of what adapters read, in training", least = 0, below = 1 },
  { "lora_targets", "", "which weights have one: " .. WHERE .. "; nothing: every linear layer and experts, but the "
    .. "last layer and routers" },
  { "lora_kind", "lora", "rslora: scaled by alpha / sqrt(rank); dora: learnt norms of rows; pissa: begins with the "
    .. "largest singular values", choices = { "lora", "rslora", "dora", "pissa" } },
  { "lora_ranks", "", "ranks of some: PATTERN=8,..., of which the last that matches counts" },
  { "lora_alphas", "", "alphas of some: PATTERN=16,..." },
  { "lora_plus", 0, "rate of the matrices B over that of A (LoRA+); 0: the same rate", least = 0, most = 1e9 },
  { "modules_to_save", "", "what trains as it is, as a new head: " .. WHERE },
}

-- The names of what an adapter has, by the kind of module that it is for; trained in this order.
local KINDS = {
  { kind = "linear", a = ".lora_A.weight", b = ".lora_B.weight", magnitude = ".lora_magnitude_vector", rank = 1 },
  { kind = "embedding", a = ".lora_embedding_A", b = ".lora_embedding_B", rank = 2 },
}

local function words(text)
  local list = {}
  for word in text:gmatch("[^,]+") do list[#list + 1] = word end
  return list
end
-- "h.*=8,..." as rows {pattern, number}.
local function numbered(text)
  local rows = {}
  for i, word in ipairs(words(text)) do
    local pattern, number = word:match("^(.+)=([^=]*)$")
    rows[i] = { pattern or word, tonumber(number) }
  end
  return rows
end

-- The rules that options ask for; nil: none. {rank, alpha, dropout, kind, targets, ranks, alphas, saved}.
function adapters.asked(o)
  if (o.lora or 0) == 0 then return nil end
  return { rank = o.lora, alpha = o.lora_alpha > 0 and o.lora_alpha or o.lora, dropout = o.lora_dropout,
           kind = o.lora_kind, targets = words(o.lora_targets), ranks = numbered(o.lora_ranks),
           alphas = numbered(o.lora_alphas), saved = words(o.modules_to_save) }
end

-- Ends the command where options of adapters do not go together.
function adapters.check(o)
  if adapters.asked(o) then
    for _, name in ipairs { "lora_ranks", "lora_alphas" } do
      for _, row in ipairs(numbered(o[name])) do
        if not (row[2] and row[2] > 0 and (name == "lora_alphas" or row[2] == math.floor(row[2]))) then
          fail.usage(("%s=%s; wanted: PATTERN=NUMBER with commas between, as '*.down_proj=16'"):format(name, o[name]))
        end
      end
    end
    return
  end
  for _, row in ipairs(adapters.options) do
    if o[row[1]] ~= nil and o[row[1]] ~= row[2] then
      fail.usage(("%s=%s: goes with lora=RANK"):format(row[1], tostring(o[row[1]])))
    end
  end
end

local function module_of(name) return (name:gsub("%.weight$", "")) end

-- What the graph of a recipe says of its modules: last layers and routers, and those that files of weights lack, which
-- train as they are. Built once, without adapters.
local function ends_of(recipe, guarded, o)
  if recipe.adapter_ends then return recipe.adapter_ends end
  local graph = fail.check("graph", cairn.graph())
  local losses, routers, last, fresh = {}, {}, nil, {}
  function graph.op(self, name, ...)
    local _, weight = ...
    if name == "linear_cross_entropy" then losses[#losses + 1] = module_of(weight:name()) end
    if name == "linear" then last = module_of(weight:name()) end
    if name == "route" then routers[#routers + 1] = last end  -- which PEFT takes for no linear layer, either
    return getmetatable(graph).__index.op(self, name, ...)
  end
  guarded(recipe.path, recipe.model, o, graph, "training")
  local heads = #losses > 0 and losses or { last }
  for _, text in ipairs(recipe.fresh and guarded(recipe.path, recipe.fresh, o) or {}) do
    for _, info in ipairs(graph:parameters()) do
      if info.name:find(parameters.pattern(text)) then
        fresh[#fresh + 1] = info.name:match("^(.*)%.[^.]*$") or info.name
      end
    end
  end
  graph:free()
  for _, name in ipairs(routers) do heads[#heads + 1] = name end
  recipe.adapter_ends = { heads = heads, fresh = fresh }
  return recipe.adapter_ends
end

-- Names, each once, and what the recipe calls its blocks in place of `h.`.
local function joined(recipe, ...)
  local list, there = {}, {}
  for _, names in ipairs { ... } do
    for _, name in ipairs(names) do
      local full = parameters.named(recipe, name)
      if not there[full] then list[#list + 1], there[full] = full, true end
    end
  end
  return table.concat(list, ",")
end
local function joined_numbers(recipe, rows)
  local list = {}
  for i, row in ipairs(rows) do list[i] = ("%s=%.17g"):format(parameters.named(recipe, row[1]), row[2]) end
  return table.concat(list, ",")
end

-- Gives a graph that a part of a recipe is about to build the rules. trains: with dropout.
function adapters.prepare(recipe, guarded, o, graph, trains)
  local rule = adapters.asked(o)
  if not rule then return end
  local ends = ends_of(recipe, guarded, o)
  local ok, problem = pcall(graph.adapt, graph, {
    kind = rule.kind, rank = rule.rank, alpha = rule.alpha, dropout = trains and rule.dropout or 0,
    targets = joined(recipe, rule.targets), except = #rule.targets == 0 and joined(recipe, ends.heads) or "",
    saved = joined(recipe, rule.saved, ends.fresh), ranks = joined_numbers(recipe, rule.ranks),
    alphas = joined_numbers(recipe, rule.alphas),
  })
  if not ok then fail.usage(("lora=%d: %s"):format(rule.rank, (tostring(problem):gsub("^[^\n]-%.lua:%d+: ", "")))) end
end

-- Groups of parameters with those of LoRA+; nil: none.
function adapters.groups(o, groups)
  if not adapters.asked(o) or o.lora_plus == 0 then return groups end
  local list = { unpack(groups or {}) }
  list[#list + 1] = { pattern = "*.lora_*B*", rate_scale = o.lora_plus }
  return list
end

-- Whether a parameter is of an adapter.
function adapters.has(name) return name:find("%.lora_[%a_]+%.?%a*$") ~= nil end

-- Whether `module` is one that the pattern names.
local function matches(pattern, module)
  return module:find(parameters.pattern(pattern)) or module:find(parameters.pattern("*." .. pattern))
end
local function number_of(rows, module, otherwise)
  for _, row in ipairs(rows) do
    if matches(row[1], module) then otherwise = row[2] end
  end
  return otherwise
end

-- What each adapter of a graph is: rows {module, kind, rank, alpha, scale, dora, a, b, magnitude, weight}, the last
-- four names of parameters, in the order of the graph. recipe: for patterns that begin with `h.`; optional.
function adapters.rows(graph, o, recipe)
  local rule, rows = adapters.asked(o), {}
  if not rule then return rows end
  for _, each in ipairs(rule.alphas) do each[1] = parameters.named(recipe or {}, each[1]) end
  for _, info in ipairs(graph:parameters()) do
    for _, names in ipairs(KINDS) do
      local module = info.name:sub(-#names.a) == names.a and info.name:sub(1, -#names.a - 1)
      local weight = module and (graph:info(module .. ".weight") or graph:info(module))
      if weight then
        local experts = #info.shape == 3
        local rank, alpha = info.shape[experts and 2 or names.rank], number_of(rule.alphas, module, rule.alpha)
        local magnitude = names.magnitude and graph:find(module .. names.magnitude) and module .. names.magnitude
        rows[#rows + 1] = {
          module = module, kind = experts and "experts" or names.kind, rank = rank, alpha = alpha,
          scale = alpha / (rule.kind == "rslora" and math.sqrt(rank) or rank), dora = magnitude and true or false,
          a = info.name, b = module .. names.b, magnitude = magnitude or nil, weight = weight.name,
        }
      end
    end
  end
  return rows
end

local ROW = { "module", "kind", "rank", "alpha", "scale", "dora", "a", "b", "magnitude", "weight" }

-- What a checkpoint and an export have to know, as JSON; nil: there are no adapters.
function adapters.text(o, graph, recipe)
  local rule = adapters.asked(o)
  if not rule then return nil end
  local modules = {}
  for i, row in ipairs(adapters.rows(graph, o, recipe)) do
    local pairs_ = {}
    for _, key in ipairs(ROW) do
      if row[key] ~= nil then pairs_[#pairs_ + 1] = { key, row[key] } end
    end
    modules[i] = json.object(pairs_)
  end
  local function patterns(rows)
    local list = {}
    for i, row in ipairs(rows) do list[i] = { row[1], row[2] } end
    return json.object(list)
  end
  local saved, there = { unpack(rule.saved) }, {}
  for _, name in ipairs(recipe and recipe.adapter_ends and recipe.adapter_ends.fresh or {}) do
    if not there[name] then saved[#saved + 1], there[name] = name, true end
  end
  return json.encode(json.object {
    { "r", rule.rank }, { "alpha", rule.alpha }, { "dropout", rule.dropout }, { "rslora", rule.kind == "rslora" },
    { "dora", rule.kind == "dora" }, { "pissa", rule.kind == "pissa" }, { "targets", json.array(rule.targets) },
    { "rank_pattern", patterns(rule.ranks) }, { "alpha_pattern", patterns(rule.alphas) },
    { "modules_to_save", json.array(saved) }, { "modules", json.array(modules) },
  })
end

return adapters
