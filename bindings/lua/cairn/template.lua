-- Chat templates: conversations as the text that a model was trained on.
local ffi = require "ffi"
local core = require "cairn.core"
local C = core.C

local Template = core.class "template"

-- Reads a template's text; name: what errors call it, "template" if it is nil. Returns the template, or nil, err.
function Template.new(source, name)
  core.expect_type(source, "string", "source")
  local out = ffi.new("cairn_template_t*[1]")
  local status = C.cairn_template_create(source, #source, name, out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return Template.wrap(out[0], { name = name })
end

-- The text that it makes of a JSON object: messages, tools, add_generation_prompt, bos_token, ... Or nil, err.
function Template:render(json)
  core.expect_type(json, "string", "json")
  local out = ffi.new("cairn_text_t*[1]")
  local status = C.cairn_template_render(self:raw(), json, #json, out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return core.take_text(out)
end

return { Template = Template }
