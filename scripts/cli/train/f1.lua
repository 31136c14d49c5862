-- F1 of classes over all of an evaluation: 2 x right / (said + there) of a class, from counts that are summed over all
-- micro-batches. f1_macro: the mean over classes that are there or were said; f1_micro: of all classes together, but
-- the one that stands for no class; f1: of the second of two.
local f1 = {}

local IGNORED = -100

-- Counts of a micro-batch: for each class how often it was right, said, and there. scores: rows of `classes` numbers;
-- targets: an FFI array.
local function counted(scores, targets, classes)
  local counts = {}
  for i = 1, 3 * classes do counts[i] = 0 end
  for row = 0, #scores / classes - 1 do
    local target = targets[row]
    if target ~= IGNORED then
      local best = 1
      for class = 2, classes do
        if scores[row * classes + class] > scores[row * classes + best] then best = class end
      end
      if best == target + 1 then counts[best] = counts[best] + 1 end
      counts[classes + best] = counts[classes + best] + 1
      counts[2 * classes + target + 1] = counts[2 * classes + target + 1] + 1
    end
  end
  return counts
end

local function of_class(counts, class)
  local classes = #counts / 3
  local both = counts[classes + class] + counts[2 * classes + class]
  return both > 0 and 2 * counts[class] / both or nil
end

-- Metrics (cli.train.metrics) of a graph's scores [rows, classes] and the data's array `target`. none: the class that
-- stands for none, as "O" of tags, from 1 (optional).
function f1.metrics(scores, classes, none)
  local function macro(counts)
    local sum, there = 0, 0
    for class = 1, classes do
      local value = of_class(counts, class)
      if value then sum, there = sum + value, there + 1 end
    end
    return there > 0 and sum / there or 0
  end
  local function micro(counts)
    local right, both = 0, 0
    for class = 1, classes do
      if class ~= none then
        right, both = right + counts[class], both + counts[classes + class] + counts[2 * classes + class]
      end
    end
    return both > 0 and 2 * right / both or 0
  end
  local made = {
    counts = { outputs = { scores = scores },
               count = function(outputs, arrays) return counted(outputs.scores, arrays.target, classes) end },
    f1_macro = { of = "counts", apply = macro, better = "higher" },
    f1_micro = { of = "counts", apply = micro, better = "higher" },
  }
  if classes == 2 and not none then
    made.f1 = { of = "counts", apply = function(counts) return of_class(counts, 2) or 0 end, better = "higher" }
  end
  return made
end

return f1
