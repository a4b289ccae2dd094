-- JSON: its parser, its framing, its types, and messages that are objects.

local DEPTH_LIMIT = 64
local ESCAPES = {['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t"}

local function blanks(text, at)
  return text:find("[^ \t\r\n]", at) or #text + 1
end

local parse

local function parse_string(text, at)
  local from, parts = at + 1, {}
  while true do
    local mark = text:find('["\\%c]', from)
    if mark == nil then return nil, "a string has no end" end
    local found = text:sub(mark, mark)
    parts[#parts + 1] = text:sub(from, mark - 1)
    if found == '"' then return table.concat(parts), mark + 1 end
    if found == "\\" then
      local letter = text:sub(mark + 1, mark + 1)
      if ESCAPES[letter] then
        parts[#parts + 1] = ESCAPES[letter]
        from = mark + 2
      else
        local hex = letter == "u" and text:match("^%x%x%x%x", mark + 2)
        if not hex then return nil, "this escape is not valid" end
        local code = tonumber(hex, 16)
        from = mark + 6
        if code >= 0xD800 and code <= 0xDBFF then
          local low = text:match("^\\u([dD][c-fC-F]%x%x)", from)
          if not low then return nil, "half of a surrogate pair" end
          code = 0x10000 + (code - 0xD800) * 1024 + tonumber(low, 16) - 0xDC00
          from = from + 6
        elseif code >= 0xDC00 and code <= 0xDFFF then return nil, "half of a surrogate pair" end
        parts[#parts + 1] = K.utf8_char(code)
      end
    elseif found == "\127" then
      parts[#parts + 1] = found
      from = mark + 1
    else return nil, "a control character is in a string" end
  end
end

local function parse_container(text, at, depth, is_object)
  local node = {t = is_object and "object" or "list", at = at}
  local closing, places = is_object and "}" or "]", {}
  at = blanks(text, at + 1)
  if text:sub(at, at) == closing then
    node.stop = at + 1
    return node, at + 1
  end
  while true do
    local key
    if is_object then
      if text:sub(at, at) ~= '"' then return nil, "a name is expected" end
      local after
      key, after = parse_string(text, at)
      if key == nil then return nil, after end
      at = blanks(text, after)
      if text:sub(at, at) ~= ":" then return nil, '":" is expected' end
      at = blanks(text, at + 1)
    end
    local value, after = parse(text, at, depth)
    if value == nil then return nil, after end
    if is_object then
      -- Of several members of a name the last one counts.
      local place = places[key] or #node + 1
      places[key] = place
      node[place] = {key = key, value = value}
    else node[#node + 1] = value end
    at = blanks(text, after)
    local mark = text:sub(at, at)
    if mark == closing then
      node.stop = at + 1
      return node, at + 1
    end
    if mark ~= "," then return nil, '"," or "' .. closing .. '" is expected' end
    at = blanks(text, at + 1)
  end
end

function parse(text, at, depth)
  local mark = text:sub(at, at)
  if mark == "{" or mark == "[" then
    if depth >= DEPTH_LIMIT then return nil, "the nesting is too deep" end
    return parse_container(text, at, depth + 1, mark == "{")
  end
  if mark == '"' then
    local value, after = parse_string(text, at)
    if value == nil then return nil, after end
    return K.scalar("s", value, at, after), after
  end
  for word, node in pairs({["true"] = {"b", true}, ["false"] = {"b", false}, ["null"] = {"null"}}) do
    if text:sub(at, at + #word - 1) == word then
      return K.scalar(node[1], node[2], at, at + #word), at + #word
    end
  end
  local digits, stop = text:match("^(%-?%d+)()", at)
  if digits == nil or digits:find("^%-?0%d") then return nil, "a value is expected" end
  local kind = "i"
  local fraction = text:match("^%.%d+()", stop)
  if fraction then kind, stop = "f", fraction end
  local exponent = text:match("^[eE][+-]?%d+()", stop)
  if exponent then kind, stop = "f", exponent end
  return K.scalar(kind, text:sub(at, stop - 1), at, stop), stop
end

function K.parse_json(text, start, stop)
  text = text:sub(1, (stop or #text + 1) - 1)
  local wrong = K.not_utf8(text)
  if wrong then return nil, "the bytes are not UTF-8" end
  local value, after = parse(text, blanks(text, start or 1), 0)
  if value == nil then return nil, after end
  if blanks(text, after) <= #text then return nil, "there is more after the value" end
  return value
end

-- Return the end of an object, or of a broken one; nil if more bytes are needed.
function K.framings.json(framing, data, at)
  local from = blanks(data, at)
  if from > #data then return nil end
  local open = {}
  local function broken(from_here)
    local line = data:find("\n", from_here, true)
    return line and line + 1
  end
  if data:sub(from, from) ~= "{" then
    local stop = broken(from)
    local start = data:find("{", from, true)
    if start and not framing.starts and (stop == nil or start < stop) then return start end
    return stop
  end
  local position = from
  while position <= #data do
    position = data:find('["{}%[%]\n]', position)
    if position == nil then return nil end
    local mark = data:sub(position, position)
    if mark == '"' then
      local inner = position + 1
      while true do
        inner = data:find('["\\\n]', inner)
        if inner == nil then return nil end
        local found = data:sub(inner, inner)
        if found == '"' then break end
        if found == "\n" then
          if framing.starts or data:sub(inner + 1, inner + 1) == "{" then return inner + 1 end
          inner = inner + 1
        else inner = inner + 2 end
      end
      position = inner + 1
    elseif mark == "{" or mark == "[" then
      if mark == "{" and #open > 0 then
        local last = position - 1
        while data:find("^[ \t\r\n]", last) do last = last - 1 end
        local before = data:sub(last, last)
        local name = framing.starts and data:match('^{%s*"([^"]*)"%s*:', position)
        -- An object with an unknown first name may contain a whole message.
        local first = name and data:match('^{%s*"([^"]*)"%s*:', from)
        local is_start = name and framing.starts[name] and (first == nil or framing.starts[first] ~= nil)
        if not (before == ":" or before == "," or before == "[") or is_start then
          return position
        end
      end
      open[#open + 1] = mark == "{" and "}" or "]"
      position = position + 1
    elseif mark == "\n" then
      position = position + 1
    else
      if open[#open] ~= mark then return broken(position) end
      open[#open] = nil
      position = position + 1
      if #open == 0 then
        if framing.line_end then
          local after = data:match("^[ \t\r]*\n?()", position)
          return after
        end
        return position
      end
    end
  end
  return nil
end

-- Types.

local function of(kinds, problem)
  return function(kind, node)
    if not kinds[node.t] then return nil, problem end
    return node
  end
end

K.types.json_text = of({s = true}, "this is not a text")
K.types.json_boolean = of({b = true}, "this is neither true nor false")

function K.types.json_number(kind, node)
  if node.t ~= "i" and (kind.whole or node.t ~= "f") then return nil, "this is not a number of this type" end
  if K.outside(kind, node.v) then return nil, "this number is out of range" end
  return node
end

function K.types.json_choice(kind, node)
  local found = (node.t == "s" or node.t == "i") and kind.values[node.t .. ":" .. node.v]
  if not found then return nil, "this value is not known here" end
  return K.scalar(found[1], found[2], node.at, node.stop)
end

-- Any value is shown as it was sent.
function K.types.json_any(kind, node)
  if node.t == "s" or node.t == "null" then return node end
  return {t = "any", v = K.json_source(node), at = node.at, stop = node.stop}
end

function K.json_source(node)
  if node.t == "s" then
    return '"' .. node.v:gsub('[%c"\\]', function(each)
      return each == '"' and '\\"' or each == "\\" and "\\\\" or string.format("\\u%04x", each:byte())
    end) .. '"'
  elseif node.t == "null" then return "null"
  elseif node.t == "list" then
    local parts = {}
    for _, item in ipairs(node) do parts[#parts + 1] = K.json_source(item) end
    return "[" .. table.concat(parts, ",") .. "]"
  elseif node.t == "object" then
    local parts = {}
    for _, member in ipairs(node) do
      parts[#parts + 1] = K.json_source(K.scalar("s", member.key)) .. ":" .. K.json_source(member.value)
    end
    return "{" .. table.concat(parts, ",") .. "}"
  end
  return tostring(node.v)
end

function K.types.json_list(kind, node)
  if node.t ~= "list" then return nil, "this is not a list" end
  if #node < (kind.least or 0) or #node > (kind.most or #node) then return nil, "this list has another length" end
  local found = {t = "list", at = node.at, stop = node.stop}
  for number, item in ipairs(node) do
    local value, problem = K.read(kind.item, item)
    if value == nil then return nil, problem end
    found[number] = value
  end
  return found
end

function K.types.json_object(kind, node)
  if node.t ~= "object" then return nil, "this is not an object" end
  local found, seen = {t = "object", at = node.at, stop = node.stop}, {}
  local known = {}
  for _, field in ipairs(kind.fields) do known[field.name] = field end
  local problem
  for _, member in ipairs(node) do
    local name = kind.spelt and kind.spelt[member.key] or member.key
    local field = known[name]
    if field and seen[name] then return nil, name .. " is given twice" end
    if field == nil then found.surplus = true
    elseif member.value.t == "null" and field.optional then
      seen[name] = not kind.spelt or nil
    else
      local value, wrong = K.read(field.type, member.value)
      if value == nil then problem = problem or name .. ": " .. wrong
      else
        seen[name] = true
        found.surplus = found.surplus or value.surplus
        found[#found + 1] = {key = name, value = value}
      end
    end
  end
  if problem then return nil, problem end
  for _, field in ipairs(kind.fields) do
    if not field.optional and not seen[field.name] then return nil, "there is no " .. field.name end
  end
  return found
end

function K.types.json_either(kind, node)
  local problem
  for _, each in ipairs(kind.either) do
    local value, wrong = K.read(each, node)
    if value then return value end
    problem = wrong
  end
  return nil, problem
end

-- Numbers by name, of which hidden ones are a total.
function K.types.json_counts(kind, node)
  local function counted(value)
    return value.t == "i" and not K.outside(kind, value.v)
  end
  if node.t == "i" and not kind.open then
    if counted(node) then return node end
    return nil, "this count is out of range"
  end
  if node.t ~= "object" then return nil, "these are no counts" end
  local found, hidden, total, seen = {t = "object", at = node.at, stop = node.stop}, nil, 0, {}
  for _, member in ipairs(node) do
    local name = kind.counts[member.key]
    if not counted(member.value) then return nil, member.key .. " is not a count" end
    if name then
      if seen[name] then return nil, name .. " is given twice" end
      seen[name] = true
      total = total + tonumber(member.value.v)
      found[#found + 1] = {key = name, value = member.value}
    elseif member.key == kind.hidden and not kind.open then hidden = member.value
    else return nil, member.key .. " is not known here" end
  end
  if hidden and total == 0 then return hidden end
  if hidden and tonumber(hidden.v) ~= 0 and tonumber(hidden.v) ~= total then
    return nil, "some are hidden and some are not"
  end
  return found
end

-- Messages.

local function at_path(value, path)
  for _, step in ipairs(path) do
    local inner
    if value and value.t == "object" then
      for _, member in ipairs(value) do
        if member.key == step then inner = member.value end
      end
    end
    value = inner
  end
  return value
end

function K.json_name(protocol, direction, node)
  if node == nil then return nil end
  if node.t == "s" then return protocol.names[direction][node.v] end
  return node.t == "i" and protocol.names[direction]["#" .. node.v] or nil
end

-- Return the rows whose name is a key of an object, the name, and the value at the key.
local function rows_of_key(protocol, direction, object)
  for _, member in ipairs(object) do
    local name, found = protocol.format.keys[direction][member.key], {}
    for _, row in ipairs(name and K.rows(protocol, direction, name) or {}) do
      local wanted, count = 1, 1
      for _ in pairs(row.beside or {}) do wanted = wanted + 1 end
      for _, other in ipairs(object) do
        if row.beside and row.beside[other.key] then count = count + 1 end
      end
      if count == wanted and (#object == wanted or (wanted == 1 and protocol.format.others)) then
        found[#found + 1] = row
      end
    end
    if #found > 0 then return found, name, member.value end
  end
end

-- Return the values of a row whose name is a key, and their number, or nil and what is wrong.
local function values_at_key(row, object, body)
  local known, inner, values, count = {}, {}, {}, 0
  for _, field in ipairs(row.fields) do
    known[field.name] = field
    if not (row.beside and row.beside[field.name]) then inner[#inner + 1] = field end
  end
  local function add(name, node)
    if row.spelt and node.t == "null" and known[name] and known[name].optional then return end
    values[name] = node
    count = count + 1
  end
  for _, member in ipairs(object) do
    if row.beside and row.beside[member.key] then add(member.key, member.value) end
  end
  if row.form == "value" then add(inner[1].name, body)
  elseif row.form == "list" then
    if body.t ~= "list" or #body > #inner then return nil, "this list does not fit" end
    for number, node in ipairs(body) do add(inner[number].name, node) end
  elseif body.t == "object" then
    for _, member in ipairs(body) do
      local name = row.spelt and row.spelt[member.key] or member.key
      if values[name] then return nil, name .. " is given twice" end
      add(name, member.value)
    end
  elseif body.t ~= "null" or row.spelt then return nil, "its fields are no object" end
  return values, count
end

local function read(field, sent)
  if sent.t == "null" and field.optional then return sent end
  return K.read(field.type, sent)
end

function K.formats.json(protocol, frame, direction, name)
  local format = protocol.format
  local start, stop = K.body(protocol, frame)
  if not frame:sub(start, stop - 1):find("[^ \t\r\n]") then return {note = "empty"} end
  local value, problem = K.parse_json(frame, start, stop)
  if value == nil then return {error = "this is not JSON: " .. problem} end
  if value.t ~= "object" then return {error = "this is not an object"} end
  if format.keys and not name then
    local rows, key, body = rows_of_key(protocol, direction, value)
    if rows == nil then return K.unknown(value[1] and value[1].key or "") end
    return K.fit(rows, key, function(row) return values_at_key(row, value, body) end, read)
  end
  local body = at_path(value, format.fields_path or {})
  if name == nil then
    local sent = at_path(value, format.name_path)
    name = K.json_name(protocol, direction, sent)
    if name == nil then
      return sent and K.unknown(tostring(sent.v or "")) or {error = "there is no message name"}
    end
  end
  if body and body.t ~= "object" and body.t ~= "null" then
    return {name = name, error = name .. ": its fields are no object"}
  end
  local values, count = {}, 0
  for _, member in ipairs(body or {}) do
    values[member.key] = member.value
    if member.key ~= format.reserved then count = count + 1 end
  end
  return K.fit(K.rows(protocol, direction, name), name, function() return values, count end, read)
end
