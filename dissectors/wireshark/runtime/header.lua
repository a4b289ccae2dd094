-- Frames with a header: constants, the length, what stands for the name, and fields of all messages.

-- Maximum length of a text up to the constant after it.
local LONGEST = 256

local function bytes_of(digits)
  return (digits:gsub("%x%x", function(each) return string.char(tonumber(each, 16)) end))
end

-- Return the parts of the header at an offset, where the message begins and the frame ends.
-- nil and true if it is incomplete; nil, false and the end of the wrong bytes if no message has it.
local function read_header(framing, data, at)
  local parts, length, own, begin, stop = {}, 0, 0, at, #data + 1
  for number, part in ipairs(framing.header) do
    local after
    if part.constant then
      local constant = bytes_of(part.constant)
      after = at + #constant
      local here = data:sub(at, after - 1)
      if here ~= constant:sub(1, #here) then return nil, false, math.min(after, stop) end
      if after > stop then return nil, true end
    elseif part.size then
      after = at + part.size
      if after > stop then return nil, true end
    elseif part["until"] then
      after = data:find(bytes_of(part["until"]), at, true)
      if after == nil and stop - at < LONGEST then return nil, true end
      if after == nil or after - at >= LONGEST then return nil, false, math.min(at + LONGEST, stop) end
    else
      local value, found = K.varint(data, at, stop)
      if value == nil and found then return nil, true end
      if value == nil then
        after = at
        while after < stop and after < at + 9 and data:byte(after) > 127 do after = after + 1 end
        return nil, false, after + 1
      end
      after = found
    end
    parts[number] = {at = at, stop = after}
    if part.name == "length" then
      local node = K.types[part.type.kind](part.type, data, at, after)
      length, own = tonumber(node.v:match("^%d+$")), after - at
      if length == nil then return nil, false, after end
    end
    at = after
  end
  if not framing.has_length then return parts, at, framing.size and begin + framing.size or stop end
  if framing.inclusive == "length" then length = length - own
  elseif framing.inclusive == "header" then length = length - (at - begin) end
  if length < 0 then return nil, false, at end
  return parts, at, at + length
end

function K.framings.length(framing, data, at)
  local parts, start, stop = read_header(framing, data, at)
  if parts then return stop <= #data + 1 and stop or nil end
  if start then return nil end
  if not framing.searches then return stop end
  -- The next message begins at the next header that is valid, or at two in succession if there may be others.
  for from = at + 1, #data do
    local found, begun, ended = read_header(framing, data, from)
    if found == nil and begun then return nil end
    if found then
      if framing.is_strong then return from end
      found, begun = read_header(framing, data, ended)
      if found then return from end
      if begun then return nil end
    end
  end
  return nil
end

K.framings.size = K.framings.length

-- Return the end of a value at an offset, nil if it is incomplete; numbers that others need are kept in `found`.
local function end_of(kind, data, at, found, name)
  if kind.fields then
    local inner = {}
    for _, field in ipairs(kind.fields) do
      at = at and end_of(field.type, data, at, inner, field.name)
    end
    return at
  end
  if kind.item then
    local count = tonumber(kind.count) or tonumber(found[kind.count] or 0)
    for _ = 1, count do
      at = at and at <= #data + 1 and end_of(kind.item, data, at, {}, "") or nil
      if at == nil then return nil end
    end
    return at
  end
  if kind.prefix then
    local node, after = K.types[kind.prefix.kind](kind.prefix, data, at, #data + 1)
    return node and after + tonumber(node.v)
  end
  if kind.length then return at + kind.length end
  if kind.kind == "binary_boolean" then return at + 1 end
  if kind.size and kind.size:sub(1, 1) == "f" then return at + (kind.size == "f32" and 4 or 8) end
  local node, after = K.types[kind.kind]({kind = kind.kind, size = kind.size, order = kind.order}, data, at, #data + 1)
  if node then found[name] = node.v end
  return node and after
end

function K.framings.fields(framing, data, at, direction)
  local protocol, name, first = framing.protocol, nil, at
  local parts, start = read_header(framing, data, at)
  if parts == nil then return not start and #data + 1 or nil end
  local kind, place = protocol.format.name_type, {at = start, stop = #data + 1}
  for number, part in ipairs(framing.header) do
    if part.name == "name" then kind, place = part.type, parts[number] end
  end
  local node, after = K.types[kind.kind](kind, data, place.at, place.stop)
  if node == nil then return nil end
  name = K.name_of_node(protocol, direction, node)
  -- Where an unknown message ends is not known.
  if name == nil then return #data + 1 end
  first = place.at == start and after or start
  local found = {}
  for _, field in ipairs(K.rows(protocol, direction, name)[1].fields) do
    first = first and end_of(field.type, data, first, found, field.name)
  end
  return first and first <= #data + 1 and first or nil
end

-- Return the header of a frame: its fields, the message's name, and where that begins; nil and what is wrong.
function K.header(protocol, frame, direction)
  local framing = protocol.framing
  local parts, start, stop = read_header(framing, frame, 1)
  if parts == nil or stop ~= #frame + 1 then return nil, {error = "the header or the length does not fit"} end
  local found = {fields = {}, start = start}
  for number, part in ipairs(framing.header) do
    local place = parts[number]
    if part.type and part.name ~= "length" then
      local node, problem = K.types[part.type.kind](part.type, frame, place.at, place.stop)
      if node == nil then found.error = part.name .. ": " .. problem
      elseif part.name == "name" then
        found.name = K.name_of_node(protocol, direction, node)
        if found.name == nil then return nil, K.unknown(node.v) end
      else found.fields[#found.fields + 1] = {key = part.name, value = node} end
    end
  end
  return found
end
