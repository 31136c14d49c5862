-- Strict command lines: --name VALUE or --name=VALUE, flags, key=value, positional words; -- ends the options. Of what
-- is given twice, the last counts.
local aliases = require "cli.base.aliases"
local fail = require "cli.base.fail"
local format = require "cli.base.format"
local nearest = require "cli.base.nearest"
local unicode = require "cli.base.unicode"

local args = {}

local UNITS = format.UNITS
local SIZES = "bytes, or with KiB, MiB, GiB, TiB, as 512MiB"

-- 1048576, 512MiB, 1.5GiB, 4e9.
local function read_bytes(text, what, wanted)
  local number, unit = text:match("^([%d%.]+[eE]?%+?%d*)%s*(%a*)$")
  local value, scale = tonumber(number or ""), UNITS[unit or "?"]
  if not value or not scale or value * scale >= 2 ^ 62 then
    local of_1024 = unit and unit:match("^([kKMGT])B?$")
    local hint = value and of_1024 and ("; did you mean %s%siB?"):format(number, of_1024:upper()) or ""
    fail.usage(("%s: '%s' is no size; wanted: %s%s"):format(what, text, wanted, hint))
  end
  if value * scale < 1 then fail.usage(("%s: '%s' is nothing; leave it out for no limit"):format(what, text)) end
  return math.floor(value * scale), unit  -- never more than what was asked for
end
function args.bytes(text, what) return (read_bytes(text, what, SIZES)) end

-- {bytes, unit} or {share}, and the text as it was typed.
function args.budget(text, what)
  local percent = text:match("^([%d%.]+)%%$")
  if not percent then
    local bytes, unit = read_bytes(text, what, SIZES .. ", or N% of what keeping everything takes")
    return { bytes = bytes, unit = unit, typed = text }
  end
  local share = tonumber(percent)
  if not share then fail.usage(("%s: '%s' is no share"):format(what, text)) end
  if share <= 0 then fail.usage(("%s: '%s' is nothing; leave it out for no limit"):format(what, text)) end
  if share > 100 then
    fail.usage(("%s: '%s' is more than keeping everything takes, 100%%; leave it out for no limit"):format(what, text))
  end
  return { share = share / 100, typed = text }
end

args.MOST_WHOLE = 2 ^ 53 - 1  -- above it not every whole number is a number of Lua

-- The least and most of whole numbers by what they count, wherever they come from: a command line, a run.json, a
-- checkpoint. The library holds counts in 32 bits; what only grows with time has all that Lua can tell apart.
args.BOUNDS = {
  threads = { 1, 4096 }, accumulate = { 1, 2 ^ 31 - 1 }, parts = { 1, 2 ^ 31 - 1 }, epochs = { 1, 2 ^ 31 - 1 },
  tokens = { 1, 2 ^ 31 - 1 }, ["top-k"] = { 0, 2 ^ 31 - 1 }, budgets = { 1, 1000 },
  seed = { 0, args.MOST_WHOLE }, steps = { 1, args.MOST_WHOLE }, next_batch = { 0, args.MOST_WHOLE },
}

-- The whole number that a text is; nil, and what is wrong with it.
function args.whole_of(text, bounds)
  local least, most = bounds[1], bounds[2] or args.MOST_WHOLE
  local value = text:match("^%d") and tonumber(text)
  if value and value > most then return nil, ("is too large; at most %.0f"):format(most) end
  if not value or not text:match("^%d+$") or value < least then
    return nil, ("is no whole number of at least %d"):format(least)
  end
  return value
end

-- Reads whole numbers from `least` to `most` (default: all that Lua can tell apart), or those of a row of BOUNDS.
function args.whole(least, most)
  local bounds = args.BOUNDS[least] or { least, most }
  return function(text, what)
    local value, problem = args.whole_of(text, bounds)
    if not value then fail.usage(("%s: '%s' %s"):format(what, text, problem)) end
    return value
  end
end

local SECONDS = { s = 1, m = 60, h = 3600 }

-- 90s, 15m, 2h: in seconds; nil: the text is none.
local function duration(text)
  local number, unit = text:match("^(%d+%.?%d*)([smh])$")
  local seconds = number and tonumber(number) * SECONDS[unit]
  return seconds and seconds > 0 and seconds < math.huge and seconds or nil
end

function args.duration(text, what)
  return duration(text) or fail.usage(("%s: '%s' is no duration above 0; wanted: 90s, 30m or 2h"):format(what, text))
end

-- {steps} or {seconds}.
function args.every(text, what)
  local seconds = duration(text)
  if seconds then return { seconds = seconds } end
  if text:match("[smh]$") or text:find(".", 1, true) then
    fail.usage(("%s: '%s' is neither a number of steps nor a duration; wanted: 500, or 90s, 15m, 2h"):format(what,
      text))
  end
  return { steps = args.whole(1)(text, what) }
end

function args.real(text, what)
  local value = tonumber(text)
  if not value or value ~= value or value < 0 or value == math.huge then
    fail.usage(("%s: '%s' is no number of at least 0"):format(what, text))
  end
  return value
end

function args.text(text) return text end

args.WORDS = setmetatable({}, { __mode = "k" })  -- by reader: what it takes, where that is one of a few words

function args.choice(...)
  local words = { ... }
  local function read(text, what)
    for _, word in ipairs(words) do
      if word == text then return text end
    end
    fail.usage(("%s: '%s' is none of: %s%s"):format(what, text, table.concat(words, ", "), nearest.hint(text, words)))
  end
  args.WORDS[read] = words
  return read
end

function args.tiers(text, what)
  if text == "none" then return text end
  local seen = {}
  for word in (text .. ","):gmatch("([^,]*),") do
    if (word ~= "host" and word ~= "disk") or seen[word] then
      fail.usage(("%s: '%s' is no list of host and disk, nor none"):format(what, text))
    end
    seen[word] = true
  end
  return text
end
args.WORDS[args.tiers] = { "host", "disk", "host,disk", "none" }

-- PATTERN=keep|recompute|offload[:host|disk] -> {pattern, policy}, as cairn.plan takes it. The pattern may have a '='.
function args.region(text, what)
  local pattern, policy = text:match("^(.*)=(.*)$")
  local wanted = "wanted: PATTERN=keep|recompute|offload[:host|disk], as 'h*/attn=recompute'"
  if not pattern then fail.usage(("%s: '%s' has no '='; %s"):format(what, unicode.shown(text), wanted)) end
  if pattern == "" then fail.usage(("%s: '%s' has an empty pattern; %s"):format(what, unicode.shown(text), wanted)) end
  if unicode.text(pattern) ~= pattern then
    fail.usage(("%s: '%s' is not UTF-8; names of regions are, so it matches none"):format(what, unicode.shown(text)))
  end
  local word, tier = policy:match("^([^:]*):(.*)$")
  word = word or policy
  local words = { "keep", "recompute", "offload", "offload:host", "offload:disk" }
  if word ~= "keep" and word ~= "recompute" and word ~= "offload" then
    fail.usage(("%s: '%s': '%s' is none of: %s%s"):format(what, unicode.shown(text), unicode.shown(word),
      table.concat(words, ", "), nearest.hint(word, words)))
  end
  if tier and word ~= "offload" then
    fail.usage(("%s: '%s': a tier goes with offload only; %s"):format(what, unicode.shown(text), wanted))
  end
  if tier and tier ~= "host" and tier ~= "disk" then
    fail.usage(("%s: '%s': '%s' is no tier; wanted: host or disk"):format(what, unicode.shown(text),
      unicode.shown(tier)))
  end
  return { pattern = pattern, policy = policy }
end

-- PATTERN=FORMAT -> {pattern, format}, as cairn.plan takes it; FORMAT alone has no pattern. The pattern may have a '='.
function args.format(text, what)
  if text:find("^[%w_]+$") then return { format = text } end
  local pattern, name = text:match("^(.*)=(.*)$")
  if not pattern or pattern == "" or name == "" then
    fail.usage(("%s: '%s' is no rule; wanted: PATTERN=FORMAT, as 'h.*.weight=int8', or FORMAT"):format(what,
      unicode.shown(text)))
  end
  if unicode.text(text) ~= text then
    fail.usage(("%s: '%s' is not UTF-8; names of parameters are, so it matches none"):format(what, unicode.shown(text)))
  end
  return { pattern = pattern, format = name }
end
function args.one_of_several(text) return text end
-- Readers of options that may be given several times: their values in a list.
args.LISTS = { [args.region] = true, [args.format] = true, [args.one_of_several] = true }

args.FLAG = {}

-- Options that several commands know: name -> {reader, help, value's name}. words: what completions offer; elsewhere:
-- none of this command's, and there to say so to who gives it all the same.
args.COMMON = {
  device = { args.text, "cpu (default), reference, cuda:N", words = { "cpu", "reference", "cuda:0" } },
  threads = { args.whole "threads", "threads of the device (default: all processors); the bits of a run depend on it" },
  budget = { args.budget, "bytes of the device (KiB, MiB, GiB, TiB), or N% of what keeping everything takes" },
  amp = { args.choice("off", "bf16", "fp16"), "mixed precision: off (default), bf16, fp16 (under a loss scale)" },
  policy = { args.choice("auto", "keep", "recompute", "offload"),
    "for activations: auto (default), keep, recompute, offload" },
  region = { args.region, "policy of regions by their paths, as 'h*/attn=recompute' (keep, recompute, offload, " ..
    "offload:host, offload:disk); may be given several times: the last that matches counts", "RULE" },
  format = { args.format, "what parameters are stored as by their names, as 'h.*.weight=int8', or a format alone, " ..
    "as nf4: that of all frozen matrices of linear ops (`cairn ops --formats`; frozen parameters without a rule " ..
    "keep the type of their file); may be given several times: the last that matches counts", "RULE" },
  tiers = { args.tiers,
    "where offloading may go: host, disk, or host,disk (default: host, if --policy, --link or a region asks, or the " ..
      "device has memory of its own); none, with a device model: nowhere" },
  link = { args.bytes, "a slow link to the host tier of the CPU device: bytes per second" },
  profile = { args.text, "plan with the seconds that `cairn profile` measured", "FILE" },
  ["force-profile"] = { args.FLAG, "take a --profile that was measured on another machine" },
  rates = { args.text, "where the device's rates come from without a profile: cache (default: measured once, in " ..
    "less than a second), measure (again), model (nothing is measured), or a FILE that was kept", "WORD|FILE",
    words = { "cache", "measure", "model" } },
  seed = { args.whole "seed", "of initial weights, dropout and the data's order (default 1337)" },
  steps = { args.whole "steps", "optimizer steps in all, those of a resumed run included" },
  accumulate = { args.whole "accumulate", "micro-batches of a step (default 1)" },
  ["on-oom"] = { args.choice("fail", "shrink"), "where memory does not suffice: fail (default), or shrink: go on " ..
    "with micro-batches of half the size and twice as many a step" },
  ["fuse-update"] = { args.FLAG, "update parameters inside backward, so that gradients need less memory: goes with " ..
    "one micro-batch per step and clip=0" },
  json = { args.FLAG, "one JSON object on stdout" },
  quiet = { args.FLAG, "nothing on stderr but errors" },
}

-- Picks from COMMON by name, and adds a command's own.
function args.known(names, own)
  local known = {}
  for name in names:gmatch("%S+") do known[name] = args.COMMON[name] end
  for name, row in pairs(own or {}) do known[name] = row end
  known["no-color"] = { args.FLAG, "no colours (as NO_COLOR=1)" }
  return known
end

local function help(usage, known)
  local names = {}
  for name, row in pairs(known) do
    if not row.elsewhere then names[#names + 1] = name end
  end
  table.sort(names)
  local lines = { "usage: " .. format.wrapped(usage, format.columns(1), 9, 7), "" }
  for _, name in ipairs(names) do
    local row = known[name]
    local value = row[1] == args.FLAG and "" or " " .. (row[3] or "VALUE")
    lines[#lines + 1] = format.option("--" .. name .. value, row[2])
  end
  return table.concat(lines, "\n") .. "\n"
end

local given  -- the options of the command whose line was parsed last

local function row_of(known)
  return function(name)
    local row = known[name]
    return row and not row.elsewhere and { flag = row[1] == args.FLAG } or nil
  end
end

local function option_hint(name, known, text, usage)
  local settings = usage:find("key=value", 1, true)
  local typed = aliases.typed("--" .. name, text, function(of) return settings and aliases.SETTINGS[of] end,
    row_of(known))
  if typed then return ("; did you mean %s?"):format(typed) end
  local names = {}
  for each in pairs(known) do names[#names + 1] = each end
  table.sort(names)
  local found = nearest.of(name, names)
  return found and ("; did you mean '--%s'?"):format(found) or ""
end

-- What somebody means who gives a recipe name=text that it does not have; nil if nothing is known of this name. has:
-- the recipe's options by name.
function args.setting_hint(name, text, has)
  local typed = aliases.typed(name, text, function(of) return has[of] ~= nil end, row_of(given or args.COMMON))
  return typed and ("; did you mean %s?"):format(typed)
end

-- Says which of settings given twice with different texts counts.
local function note_repeated(settings, options)
  local last = {}
  for _, setting in ipairs(settings) do
    local name, text = setting[1], setting[2]
    if last[name] and last[name] ~= text and not options.quiet then
      io.stderr:write(("note: %s=%s was given, too; the last counts: %s=%s\n"):format(name, last[name], name, text))
    end
    last[name] = text
  end
end

local function added(list, value)
  list = list or {}
  list[#list + 1] = value
  return list
end

-- Returns options (by name, '-' as '_'), positional words, {key, value} pairs, and options as they were written (by
-- name, with '-'; flags: true); or nil after printing help.
-- more_help: what help says about the words before it, as function(words) -> text.
function args.parse(arguments, known, usage, more_help)
  local options, words, settings, texts = {}, {}, {}, {}
  local at, open = 1, true
  given = known
  while at <= #arguments do
    local word = arguments[at]
    local name, inline = word:match("^%-%-([^=]+)=?(.*)$")
    if open and word == "--" then
      open = false
    elseif open and (word == "--help" or word == "-h") then
      io.stdout:write(help(usage, known), more_help and more_help(words) or "")
      return nil
    elseif open and word:match("^%-") and word ~= "-" then
      local row = name and known[name]
      if not row then
        local text = inline ~= "" and inline or arguments[at + 1]
        if text and text:sub(1, 2) == "--" then text = nil end
        fail.usage(("unknown option '%s'%s; usage: %s"):format(word,
          name and option_hint(name, known, text, usage) or "", usage))
      end
      local value
      if row[1] == args.FLAG then
        if word:find("=", 1, true) then fail.usage(("--%s takes no value"):format(name)) end
        value, texts[name] = true, true
      else
        if word:find("=", 1, true) then
          value = inline
        else
          at = at + 1
          value = arguments[at]
          if value == nil or (value:match("^%-%-") and known[value:match("^%-%-([^=]+)")]) then
            fail.usage(("--%s needs a value"):format(name))
          end
        end
        local what = row[3] and (row[3] == "DIR" and "directory" or row[3]:find("FILE$") and "file")
        if what and value == "" then fail.usage(("--%s: '' is no %s"):format(name, what)) end
        local read = row[1](value, "--" .. name)
        if args.LISTS[row[1]] then
          value, read = added(texts[name], value), added(options[name:gsub("-", "_")], read)
        end
        texts[name], value = value, read
      end
      options[name:gsub("-", "_")] = value
    elseif word:match("^[%a_][%w_]*=") then
      settings[#settings + 1] = { word:match("^([%a_][%w_]*)=(.*)$") }
    else
      words[#words + 1] = word
    end
    at = at + 1
  end
  if options.no_color then format.no_color = true end
  note_repeated(settings, options)
  return options, words, settings, texts
end

return args
