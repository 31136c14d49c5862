-- The files that an option of instruction data names: one, several with commas between, a directory of them, or a
-- pattern of names in one directory, as chats/train-*.jsonl. They are read row by row, one after the other.
local fail = require "cli.base.fail"
local files = require "cli.base.files"
local json_array = require "cli.instruct.json_array"
local posix = require "cli.base.posix"
local tables = require "cli.data.table"
local unicode = require "cli.base.unicode"

local shards = {}

local function is_directory(name) return posix.no_file(name) == "a directory" end
local function is_pattern(name) return name:find("[*?]") ~= nil and not posix.is_there(name) end
local function ending(name) return (name:match("%.(%w+)$") or ""):lower() end

-- Whether an option names rows, by names alone: files are not read, and may be gone.
function shards.are(name)
  if name == "" or name == "random" then return false end
  if is_directory(name) or is_pattern(name) then return true end
  for _, each in ipairs { name, name:match("^([^,]*),") } do
    if tables.form_of(each) or ending(each) == "parquet" then return true end
  end
  return false
end

-- Names of rows in a directory that match a pattern of a shell, in order.
local function in_directory(directory, pattern, what, given)
  local wanted = pattern and "^" .. pattern:gsub("[%^%$%(%)%%%.%[%]%+%-]", "%%%0"):gsub("%*", ".*"):gsub("%?", ".") ..
    "$"
  local found = {}
  for _, name in ipairs(posix.list(directory == "" and "." or directory) or {}) do
    local path = directory == "" and name or directory:gsub("/+$", "") .. "/" .. name
    local rows = tables.form_of(name) or ending(name) == "parquet"
    if not name:find("^%.") and not posix.no_file(path) and (wanted and name:find(wanted) or not wanted and rows) then
      found[#found + 1] = path
    end
  end
  if #found == 0 then
    fail.input(("%s: %s %s"):format(what, unicode.shown(given), pattern and "is the name of no file"
      or "is a directory without files of rows; wanted: .jsonl, .csv or .tsv in it"))
  end
  return found
end

-- The files that `name` stands for, in the order in which their rows are numbered. what: the option.
function shards.list(name, what)
  local list = {}
  local function add(each)
    if is_directory(each) then
      for _, path in ipairs(in_directory(each, nil, what, each)) do list[#list + 1] = path end
    elseif is_pattern(each) then
      local directory, pattern = each:match("^(.*)/([^/]*)$")
      for _, path in ipairs(in_directory(directory or "", pattern or each, what, each)) do list[#list + 1] = path end
    else
      list[#list + 1] = each
    end
  end
  if posix.is_there(name) or not name:find(",", 1, true) then
    add(name)
  else
    for each in name:gmatch("[^,]+") do add(each) end
  end
  for _, path in ipairs(list) do
    if ending(path) == "parquet" or posix.is_there(path) and files.read(path, what, 4) == "PAR1" then
      fail.input(("%s: %s is a Parquet file, which cairn does not read; write it as JSON lines: duckdb -c \"COPY " ..
        "(FROM '%s') TO 'rows.jsonl'\", or pandas' to_json(orient='records', lines=True)"):format(what,
        unicode.shown(path), path))
    end
  end
  return list
end

-- Calls take(row, line, reader, number of the file) for each row of all files.
function shards.each(list, what, take)
  for i, path in ipairs(list) do
    local each = json_array.is(path, what) and json_array.each or tables.each
    each(path, what, function(row, line, reader) take(row, line, reader, i) end)
  end
end

return shards
