-- The labels of a model that tells texts apart, as its config.json has them.
local fail = require "cli.base.fail"
local unicode = require "cli.base.unicode"

local labels = {}

local MOST_LABELS = 10000

-- The labels that a config has for numbers from 0, or nil.
function labels.of(c, where)
  local list, count = {}, 0
  for id in pairs(c.id2label or {}) do
    local number = tonumber(id)
    count = count + 1
    if not number or number < 0 or number ~= math.floor(number) or number >= MOST_LABELS then
      fail.input(("%s: id2label has the key '%s'; wanted: whole numbers from 0"):format(where,
        unicode.shown(tostring(id))))
    end
  end
  if count == 0 then  -- Transformers leaves out what it would make up
    count = c.num_labels or 2
    if count > MOST_LABELS then
      fail.input(("%s: num_labels is %.0f; at most %d"):format(where, count, MOST_LABELS))
    end
    for i = 1, count do list[i] = ("LABEL_%d"):format(i - 1) end
    return list
  end
  local seen = {}
  for i = 1, count do
    local label = c.id2label[tostring(i - 1)] or c.id2label[i - 1]
    if type(label) ~= "string" or seen[label] then
      fail.input(("%s: id2label: %d is %s; wanted: for each number from 0 to %d a text of its own"):format(where,
        i - 1, label == nil and "not there" or unicode.shown(tostring(label)), count - 1))
    end
    list[i], seen[label] = label, true
  end
  return list
end

-- Puts the labels into a config, for numbers from 0.
function labels.put(config, list)
  config.id2label, config.label2id, config.num_labels = {}, {}, nil
  for i, label in ipairs(list) do
    config.id2label[tostring(i - 1)], config.label2id[label] = label, i - 1
  end
end

return labels
