-- The keys that commands print with --json: sections { command, about, keys = { { key, words } } }. {a, b} in a key
-- stands for a and b, [] for each element of an array, NAME for any name. A test compares with what commands print.
local sections = {}
for _, name in ipairs { "runs", "models", "tables" } do
  for _, section in ipairs(require("pages.json_keys." .. name)) do sections[#sections + 1] = section end
end
return sections
