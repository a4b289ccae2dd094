-- Types of values that are sent as text. Each returns a node, or nil and what is wrong.

local function outside(kind, digits)
  local value = tonumber(digits)
  return (kind.min and value < kind.min) or (kind.max and value > kind.max)
end
K.outside = outside

function K.types.text(kind, text)
  if kind.no_blanks and (text == "" or text:find("[%s%c]")) then return nil, "there are blanks, or nothing" end
  if kind.filled and text == "" then return nil, "there is nothing here" end
  return K.scalar("s", text)
end

function K.types.number(kind, text)
  local sign = kind.plus and "^[+-]?" or "^-?"
  if text:find(sign .. "%d+$") then
    local digits = text:gsub("^%+", ""):gsub("^(-?)0+(%d)", "%1%2")
    if digits == "-0" then digits = "0" end
    if #text:gsub("[+-]", "") > (kind.digits or 20) or (kind.unsigned and text:find("^-")) then
      return nil, "this is not a number that is allowed here"
    end
    if outside(kind, digits) then return nil, "this number is out of range" end
    return K.scalar("i", digits)
  end
  local whole, rest = text:match("^%-?%d+%.?%d*()(.*)$")
  if not kind.whole and whole and not text:find("%.$") and not text:find("%.[eE]")
    and (rest == "" or rest:find("^[eE][+-]?%d%d?%d?$")) then
    if outside(kind, text) then return nil, "this number is out of range" end
    return K.scalar("f", text)
  end
  return nil, text == "" and "there is nothing here" or "this is not a number"
end

-- One of a few texts, each with its value.
function K.types.choice(kind, text)
  local found = kind.values[text]
  if found == nil then return nil, "this value is not known here" end
  return K.scalar(found[1], found[2])
end

local function add_parts(kind, texts, node, type_at, key_at)
  for number, text in ipairs(texts) do
    local part = type_at(number)
    if part == nil then return nil, "there is more than belongs here" end
    local value, problem = K.read(part, text)
    if value == nil then return nil, problem end
    node[number] = key_at and {key = key_at(number), value = value} or value
  end
  return node
end

function K.types.list(kind, text)
  local texts = (text == "" and not kind.filled) and {} or K.split(text, kind.separator)
  return add_parts(kind, texts, {t = "list"}, function() return kind.item end)
end

function K.types.object(kind, text)
  local texts = K.split(text, kind.separator)
  if #texts < kind.least then return nil, "a part is missing" end
  return add_parts(kind, texts, {t = "object"},
    function(number) return kind.fields[number] and kind.fields[number].type end,
    function(number) return kind.fields[number].name end)
end

-- name:number,name:number, of which each is shown as a text.
function K.types.scores(kind, text)
  local node, at = {t = "list"}, 1
  while at <= #text do
    local name, points, stop = text:match("^(.-):(%-?%d+),()", at)
    if name == nil then name, points, stop = text:match("^(.-):(%-?%d+)()$", at) end
    if name == nil then return nil, "there is no name:points here" end
    node[#node + 1] = K.scalar("s", name .. ":" .. points)
    at = stop
  end
  return node
end

-- Two dice; the higher one is shown first.
function K.types.dice(kind, text)
  local parts = K.split(text, ",")
  if #parts < 2 then return nil, "these are not two dice" end
  local pips = {}
  for number = 1, 2 do
    local digits = parts[number]:match("^%s*([+-]?%d+)")
    local value = tonumber(digits)
    if value == nil or #digits > 10 or not (kind.any or (value >= 1 and value <= 6)) then
      return nil, "this is not a die"
    end
    pips[number] = value
  end
  if pips[1] < pips[2] then pips[1], pips[2] = pips[2], pips[1] end
  return K.scalar("s", string.format("%d,%d", pips[1], pips[2]))
end
