-- Messages of key=value, in any order.

-- Read the values of the row that fits best; `read` reads one value. `values_of` returns those of a row and their
-- number, or nil and what is wrong.
function K.fit(rows, name, values_of, read)
  local best, best_number, best_problem
  for _, row in ipairs(rows) do
    local fields, problem = {}, nil
    local values, count = values_of(row)
    if values == nil then problem = count end
    for _, field in ipairs(values and row.fields or {}) do
      local sent = values[field.name]
      if sent ~= nil then
        local value, wrong = read(field, sent)
        if value == nil then problem = problem or field.name .. ": " .. wrong
        else fields[#fields + 1] = {key = field.name, value = value} end
      elseif not field.optional then
        problem = problem or "there is no " .. field.name
      end
    end
    if problem == nil then
      if #fields >= count then return {name = name, fields = fields} end
      if best == nil or best_problem then best, best_number, best_problem = fields, #fields + 1000, nil end
    elseif best == nil or (best_problem and #fields > best_number) then
      best, best_number, best_problem = fields, #fields, problem
    end
  end
  return {name = name, fields = best, error = best_problem and name .. ": " .. best_problem or nil}
end

local function trimmed(text, at, stop)
  local ended, first = K.stripped(text, at, stop, " \t\r\n")
  return first, ended
end

local function quoted_end(format, text, at, assign, ended)
  local mark = format.quote
  if mark == nil or mark == "" or assign == nil or ended < assign then return nil end
  local before = text:sub(at, assign - 1)
  if before:find(format.delimiter, 1, true) or before:find(mark, 1, true) then return nil end
  local from = text:find("[^ \t\r\n]", assign + #format.assign)
  if from == nil or text:sub(from, from + #mark - 1) ~= mark then return nil end
  from = from + #mark
  while from <= #text do
    if text:sub(from, from) == "\\" then from = from + 2
    elseif text:sub(from, from + #mark - 1) == mark then return from + #mark
    else from = from + 1 end
  end
  return nil
end

-- Return the fields whose values are all that remains, of all messages or of one.
local function rest_keys(protocol, name)
  protocol.rest = protocol.rest or {}
  local found = protocol.rest[name or ""]
  if found then return found end
  found = {}
  protocol.rest[name or ""] = found
  for _, rows in pairs(protocol.messages) do
    for _, row in ipairs(rows) do
      for _, field in ipairs((name == nil or name == row.name) and row.fields or {}) do
        if field.type.kind == "rest" then found[field.name] = true end
      end
    end
  end
  return found
end

function K.formats.pairs(protocol, frame, direction, name)
  local format, rest = protocol.format, rest_keys(protocol, name)
  local start, stop = K.body(protocol, frame)
  if start == stop and name == nil then return {note = "empty"} end
  local text, wrong = K.decoded(frame:sub(start, stop - 1), format.encoding)
  if wrong then return {error = "the bytes are not " .. format.encoding} end
  local at, head, values, count, bare = 1, nil, {}, 0, nil
  if format.name == "first" and name == nil then
    local word = text:match("^[^ \t\r\n]*")
    local cut = word:find(format.delimiter, 1, true)
    head = cut and word:sub(1, cut - 1) or word
    at = #head + 1
  end
  local next_assign = text:find(format.assign, at, true)
  while at <= #text do
    if next_assign and next_assign < at then next_assign = text:find(format.assign, at, true) end
    local assign = next_assign
    local ended = text:find(format.delimiter, at, true) or #text + 1
    local quoted = quoted_end(format, text, at, assign, ended)
    if quoted then ended = text:find(format.delimiter, quoted, true) or #text + 1 end
    if assign and assign < ended then
      local first, last = trimmed(text, at, assign)
      if rest[text:sub(first, last - 1)] then ended = #text + 1 end
    end
    local first, last = trimmed(text, at, ended)
    if first < last then
      if assign and assign >= first and assign + #format.assign <= last then
        local key_first, key_last = trimmed(text, first, assign)
        local value_at, value_stop = trimmed(text, assign + #format.assign, last)
        local shown, mark = text:sub(value_at, value_stop - 1), format.quote
        if mark and mark ~= "" and #shown > 1 and shown:sub(1, #mark) == mark and shown:sub(-#mark) == mark then
          shown = shown:sub(#mark + 1, -#mark - 1):gsub("\\(.)", function(each)
            return (each == "\\" or each == mark) and each or "\\" .. each
          end)
        end
        local key = text:sub(key_first, key_last - 1)
        if values[key] == nil then count = count + 1 end
        values[key] = {text = shown, at = value_at + start - 1, stop = value_stop + start - 1}
      else bare = true end
    end
    at = ended + #format.delimiter
  end
  local keys = count
  if name == nil then
    local sent = head or (values[format.name] and values[format.name].text)
    if sent == nil then return {error = "there is no " .. format.name} end
    name, keys = K.name_of(protocol, direction, sent), count - (head and 0 or 1)
    if name == nil then return K.unknown(sent) end
  end
  if bare then return {name = name, error = name .. ": there is a word without a value"} end
  local function values_of() return values, keys end
  return K.fit(K.rows(protocol, direction, name), name, values_of, function(field, value)
    local node, problem = K.read(field.type, value.text)
    if node then node.at, node.stop = value.at, value.stop end
    return node, problem
  end)
end
