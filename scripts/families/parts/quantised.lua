-- quantization_config of a config.json: which ways of quantising can be read. Which matrices are quantised, the files
-- say; modules_to_not_convert and its like need no reading.
local unicode = require "cli.base.unicode"

local quantised = {}

-- A null is a table in some readings of JSON.
local function is(value, wanted) return value == nil or type(value) == "table" or value == wanted end

-- By quant_method: the problem with an object, in words, or nil.
local METHODS = {
  bitsandbytes = function(q)
    if q.load_in_8bit == true or is(q.bnb_4bit_quant_type, "nf4") then return nil end
    return ("bnb_4bit_quant_type is %s; cairn reads nf4"):format(unicode.shown(tostring(q.bnb_4bit_quant_type)))
  end,
  gptq = function(q)
    if not is(q.bits, 4) then return ("bits is %s; cairn reads 4"):format(tostring(q.bits)) end
    local form = q.checkpoint_format
    if is(form, "gptq") or form == "gptq_v2" then return nil end
    return ("checkpoint_format is %s; cairn reads gptq and gptq_v2"):format(unicode.shown(tostring(form)))
  end,
  awq = function(q)
    local bits = q.bits or q.w_bit
    if not is(bits, 4) then return ("bits is %s; cairn reads 4"):format(tostring(bits)) end
    if is(q.version, "gemm") or q.version == "GEMM" then return nil end
    return ("version is %s; cairn reads gemm"):format(unicode.shown(tostring(q.version)))
  end,
  fp8 = function(q)
    local block = q.weight_block_size
    if type(block) ~= "table" or block[1] == nil or block[1] == 128 and block[2] == 128 then return nil end
    return ("weight_block_size is [%s]; cairn reads [128, 128]"):format(table.concat(block, ", "))
  end,
  mxfp4 = function() return nil end,
}

-- Why weights of a quantization_config cannot be read; nil: they can.
function quantised.problem(q)
  local method = METHODS[q.quant_method]
  local problem = method and method(q)
  if method and not problem then return nil end
  local names = {}
  for name in pairs(METHODS) do names[#names + 1] = name end
  table.sort(names)
  return ("quantization_config: quant_method is %s%s; take the model's unquantized files"):format(
    unicode.shown(tostring(q.quant_method)), problem and ", " .. problem
    or ("; cairn reads %s"):format(table.concat(names, ", ")))
end

return quantised
