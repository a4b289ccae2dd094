-- JSON objects whose only attribute is the message's name; its value has the fields, in one of three forms.

local function body_type(row)
  local inner = {}
  for _, field in ipairs(row.fields) do
    if not (row.beside and row.beside[field.name]) then inner[#inner + 1] = field end
  end
  return {kind = "json_" .. row.form, fields = inner, spelt = row.spelt, field = inner[1]}
end

function K.types.json_tuple(kind, node)
  local least = 0
  for _, field in ipairs(kind.fields) do least = least + (field.optional and 0 or 1) end
  if node.t ~= "list" or #node < least or #node > #kind.fields then return nil, "this list does not fit" end
  local found = {t = "object"}
  for number, item in ipairs(node) do
    local field = kind.fields[number]
    local value, problem = K.read(field.type, item)
    if value == nil then return nil, field.name .. ": " .. problem end
    found[number] = {key = field.name, value = value}
  end
  return found
end

function K.types.json_value(kind, node)
  local value, problem = K.read(kind.field.type, node)
  if value == nil then return nil, kind.field.name .. ": " .. problem end
  return {t = "object", {key = kind.field.name, value = value}}
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

function K.formats.keyed(protocol, frame, direction)
  if not frame:find("[^ \t\r\n]") then return {error = "there is no message in this line"} end
  local value, problem = K.parse_json(frame)
  if value == nil then return {error = "this is not JSON: " .. problem} end
  if value.t ~= "object" then return {error = "this is not an object"} end
  local names = protocol.format.keys[direction]
  local rows, key, body = {}, nil, nil
  for _, member in ipairs(value) do
    for _, row in ipairs(names[member.key] and K.rows(protocol, direction, names[member.key]) or {}) do
      local fits, count = true, 1
      for name in pairs(row.beside or {}) do
        count = count + 1
        local found = false
        for _, other in ipairs(value) do found = found or other.key == name end
        fits = fits and found
      end
      if fits and count == #value then
        rows[#rows + 1] = row
        key, body = names[member.key], member.value
      end
    end
    if key then break end
  end
  if key == nil then return K.unknown(value[1] and value[1].key or "") end
  local found, best
  for _, row in ipairs(rows) do
    local node, wrong = K.read(body_type(row), body)
    if node then
      for name in pairs(row.beside or {}) do
        for _, field in ipairs(row.fields) do
          for _, member in ipairs(value) do
            if node and field.name == name and member.key == name then
              local part, bad = K.read(field.type, member.value)
              if part == nil then node, wrong = nil, bad
              else node[#node + 1] = {key = name, value = part} end
            end
          end
        end
      end
    end
    if node and not node.surplus then return {name = key, fields = node} end
    if node then found = found or node else best = best or wrong end
  end
  if found then return {name = key, fields = found} end
  return {name = key, error = key .. ": " .. (best or "malformed")}
end
