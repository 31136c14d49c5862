-- What the completions of all shells need.
local words = {}

-- "names separated by blanks" of rows' field.
function words.names(rows, prefix, suffix)
  local list = {}
  for i, row in ipairs(rows) do list[i] = (prefix or "") .. (row.name or row) .. (suffix or "") end
  return table.concat(list, " ")
end

-- Whether an option's value is a path: "file", "directory", or nil.
function words.path(option)
  if option.value and option.value:find("FILE", 1, true) then return "file" end
  return option.value == "DIR" and "directory" or nil
end

-- Text for help, in one line of a shell script's single quotes.
function words.quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

return words
