-- Binary messages: a code or a name, and values one after the other. Types return a node and its end.

local MAX_VARINT = 10

-- Return the digits of the unsigned number of some bytes, the most significant first.
local function unsigned(bytes)
  local digits = {0}
  for _, byte in ipairs(bytes) do
    local carry = byte
    for place = 1, #digits do
      local sum = digits[place] * 256 + carry
      digits[place], carry = sum % 10000000, math.floor(sum / 10000000)
    end
    if carry > 0 then digits[#digits + 1] = carry end
  end
  local text = string.format("%d", digits[#digits])
  for place = #digits - 1, 1, -1 do text = text .. string.format("%07d", digits[place]) end
  return text
end

local function bytes_of(data, at, size, order)
  local bytes = {data:byte(at, at + size - 1)}
  if order == "little" then
    for number = 1, math.floor(#bytes / 2) do
      bytes[number], bytes[#bytes + 1 - number] = bytes[#bytes + 1 - number], bytes[number]
    end
  end
  return bytes
end

local function whole(data, at, size, order, signed)
  local bytes = bytes_of(data, at, size, order)
  if signed and bytes[1] >= 128 then
    local carry = 1
    for number = #bytes, 1, -1 do
      local value = 255 - bytes[number] + carry
      bytes[number], carry = value % 256, math.floor(value / 256)
    end
    return "-" .. unsigned(bytes)
  end
  return unsigned(bytes)
end

-- Return the digits of an unsigned LEB128 number and its end; nil and true if it is incomplete.
function K.varint(data, at, stop)
  local groups = {}
  for position = at, math.min(stop, at + MAX_VARINT) - 1 do
    local byte = data:byte(position)
    groups[#groups + 1] = byte % 128
    if byte < 128 then
      if #groups == MAX_VARINT and groups[MAX_VARINT] > 1 then return nil end
      local bits = {}
      for _, group in ipairs(groups) do
        for _ = 1, 7 do
          bits[#bits + 1] = group % 2
          group = math.floor(group / 2)
        end
      end
      local bytes = {}
      for first = 1, #bits, 8 do
        local value, weight = 0, 1
        for bit = first, math.min(first + 7, #bits) do
          value, weight = value + bits[bit] * weight, weight * 2
        end
        table.insert(bytes, 1, value)
      end
      return unsigned(bytes), position + 1
    end
  end
  return nil, stop - at < MAX_VARINT
end

local SIZES = {u8 = 1, u16 = 2, u32 = 4, u64 = 8, i8 = 1, i16 = 2, i32 = 4, i64 = 8, f32 = 4, f64 = 8}

local function float(bytes)
  local sign = bytes[1] >= 128 and -1 or 1
  local exponent, mantissa, bias, bits
  if #bytes == 4 then
    exponent = bytes[1] % 128 * 2 + math.floor(bytes[2] / 128)
    mantissa, bias, bits = (bytes[2] % 128 * 256 + bytes[3]) * 256 + bytes[4], 127, 23
  else
    exponent = bytes[1] % 128 * 16 + math.floor(bytes[2] / 16)
    mantissa, bias, bits = bytes[2] % 16, 1023, 52
    for number = 3, 8 do mantissa = mantissa * 256 + bytes[number] end
  end
  if exponent == 2 * bias + 1 then return nil end
  if exponent == 0 then return sign * mantissa * 2 ^ (1 - bias - bits) end
  return sign * (1 + mantissa / 2 ^ bits) * 2 ^ (exponent - bias)
end

local function unpack_value(kind, data, at, stop, before)
  return K.types[kind.kind](kind, data, at, stop, before)
end

function K.types.binary_number(kind, data, at, stop)
  local after = at + SIZES[kind.size]
  if after > stop then return nil, "the message ends too early" end
  local family = kind.size:sub(1, 1)
  if family == "f" then
    local value = float(bytes_of(data, at, after - at, kind.order))
    if value == nil or K.outside(kind, value) then return nil, "this is not a number" end
    return K.scalar("f", string.format("%.17g", value), at, after), after
  end
  local digits = whole(data, at, after - at, kind.order, family == "i")
  if K.outside(kind, digits) or (kind.known and not kind.known["#" .. digits]) then
    return nil, "this number is out of range"
  end
  if kind.names then
    local found = kind.names.values[digits]
    return K.scalar(found[1], found[2], at, after), after
  end
  return K.scalar("i", digits, at, after), after
end

function K.types.binary_varint_number(kind, data, at, stop)
  local digits, after = K.varint(data, at, stop)
  if digits == nil then return nil, "this varint has no end" end
  return K.scalar("i", digits, at, after), after
end

function K.types.binary_boolean(kind, data, at, stop)
  local byte = at < stop and data:byte(at) or nil
  if byte == nil or byte > 1 then return nil, "this is neither 0 nor 1" end
  return K.scalar("b", byte == 1, at, at + 1), at + 1
end

local function bounds(kind, data, at, stop)
  local length = kind.length
  if kind.prefix then
    local node, after = unpack_value(kind.prefix, data, at, stop)
    if node == nil then return nil, after end
    length, at = tonumber(node.v), after
  end
  if length == nil then return at, stop end
  if length < 0 or length > stop - at then return nil, "there are fewer bytes" end
  return at, at + length
end

function K.types.binary_text(kind, data, at, stop)
  local start, after = bounds(kind, data, at, stop)
  if start == nil then return nil, after end
  local sent = data:sub(start, after - 1)
  if kind.length then sent = sent:gsub("%z+$", "") end
  if kind.filled then sent = sent:gsub("^[ %z]+", ""):gsub("[ %z]+$", "") end
  local text, wrong = K.decoded(sent, kind.encoding)
  if wrong then return nil, "the bytes are not " .. kind.encoding end
  if kind.words and not kind.words[text] then return nil, "this value is not known here" end
  return K.scalar("s", text, at, after), after
end

function K.types.binary_bytes(kind, data, at, stop)
  local start, after = bounds(kind, data, at, stop)
  if start == nil then return nil, after end
  local hex = data:sub(start, after - 1):gsub(".", function(byte)
    return string.format("%02x", byte:byte())
  end)
  return K.scalar("s", hex, at, after), after
end

function K.types.binary_list(kind, data, at, stop, before)
  local found, count = {t = "list", at = at, stop = stop}, tonumber(kind.count)
  for _, each in ipairs(before or {}) do
    if each.key == kind.count then count = tonumber(each.value.v) end
  end
  if count and count > stop - at then return nil, "there are fewer items" end
  while count and #found < count or not count and at < stop do
    local value, after = unpack_value(kind.item, data, at, stop)
    if value == nil then return nil, after end
    if after == at then return nil, "this list has no end" end
    found[#found + 1], at = value, after
  end
  found.stop = at
  return found, at
end

function K.types.binary_object(kind, data, at, stop)
  local found = {t = "object", at = at}
  for number, field in ipairs(kind.fields) do
    local value, after = unpack_value(field.type, data, at, stop, found)
    if value == nil then return nil, after end
    found[number], at = {key = field.name, value = value}, after
  end
  found.stop = at
  return found, at
end

function K.name_of_node(protocol, direction, sent)
  return sent.t == "i" and protocol.names[direction]["#" .. sent.v] or K.name_of(protocol, direction, sent.v)
end

function K.formats.struct(protocol, frame, direction, name)
  local start, stop = K.body(protocol, frame)
  local first = start
  if name == nil then
    if start == stop then return {error = "there is no message in this frame"} end
    local sent, after = unpack_value(protocol.format.name_type, frame, start, stop)
    if sent == nil then return {error = "the message name is malformed: " .. after} end
    name, first = K.name_of_node(protocol, direction, sent), after
    if name == nil then return K.unknown(sent.v) end
  end
  local best, best_problem
  for _, row in ipairs(K.rows(protocol, direction, name)) do
    local fields, at, problem = {}, first, nil
    for _, field in ipairs(row.fields) do
      if not (field.optional and at == stop) then
        local value, after = unpack_value(field.type, frame, at, stop, fields)
        if value == nil then
          problem = field.name .. ": " .. after
          break
        end
        fields[#fields + 1], at = {key = field.name, value = value}, after
      end
    end
    if problem == nil and at < stop and not protocol.format.is_padded then problem = (stop - at) .. " bytes follow" end
    if problem == nil then return {name = name, fields = fields} end
    if best == nil or #fields > #best then best, best_problem = fields, problem end
  end
  return {name = name, fields = best, error = name .. ": " .. best_problem}
end
