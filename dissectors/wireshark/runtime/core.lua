-- The part that all protocols share: fields, direction, reassembly, the tree.
-- A value is a node: {t = "s" | "i" | "f" | "b" | "null" | "any", v = …} or {t = "list" | "object", …};
-- a number's v is its digits, as Lua's numbers are too short. Offsets count from 1, ends are exclusive.

local FRAME_LIMIT = 1048576
K.types, K.formats, K.framings = {}, {}, {}
-- By format: reads an incomplete message at the end of a connection.
K.truncated = {}

function K.scalar(kind, value, at, stop)
  return {t = kind, v = value, at = at, stop = stop}
end

-- Return the offset of the first byte from `at` that is not UTF-8, nil if there is none.
function K.not_utf8(text, at)
  local size = #text
  at = at or 1
  while at <= size do
    at = text:find("[\128-\255]", at)
    if at == nil then return nil end
    local a, b, c, d = text:byte(at, at + 3)
    local function tail(byte, low, high)
      return byte ~= nil and byte >= (low or 0x80) and byte <= (high or 0xBF)
    end
    if a >= 0xC2 and a <= 0xDF and tail(b) then at = at + 2
    elseif a >= 0xE0 and a <= 0xEF and tail(b, a == 0xE0 and 0xA0, a == 0xED and 0x9F) and tail(c) then
      at = at + 3
    elseif a >= 0xF0 and a <= 0xF4 and tail(b, a == 0xF0 and 0x90, a == 0xF4 and 0x8F) and tail(c) and tail(d)
    then at = at + 4
    else return at end
  end
  return nil
end

function K.utf8_char(code)
  if code < 0x80 then return string.char(code) end
  if code < 0x800 then
    return string.char(0xC0 + math.floor(code / 64), 0x80 + code % 64)
  end
  if code < 0x10000 then
    return string.char(0xE0 + math.floor(code / 4096), 0x80 + math.floor(code / 64) % 64, 0x80 + code % 64)
  end
  return string.char(0xF0 + math.floor(code / 262144), 0x80 + math.floor(code / 4096) % 64,
    0x80 + math.floor(code / 64) % 64, 0x80 + code % 64)
end

local WINDOWS = {
  [0x80] = 0x20AC, [0x82] = 0x201A, [0x83] = 0x192, [0x84] = 0x201E, [0x85] = 0x2026, [0x86] = 0x2020,
  [0x87] = 0x2021, [0x88] = 0x2C6, [0x89] = 0x2030, [0x8A] = 0x160, [0x8B] = 0x2039, [0x8C] = 0x152,
  [0x8E] = 0x17D, [0x91] = 0x2018, [0x92] = 0x2019, [0x93] = 0x201C, [0x94] = 0x201D, [0x95] = 0x2022,
  [0x96] = 0x2013, [0x97] = 0x2014, [0x98] = 0x2DC, [0x99] = 0x2122, [0x9A] = 0x161, [0x9B] = 0x203A,
  [0x9C] = 0x153, [0x9E] = 0x17E, [0x9F] = 0x178,
  [0x81] = 0xFFFD, [0x8D] = 0xFFFD, [0x8F] = 0xFFFD, [0x90] = 0xFFFD, [0x9D] = 0xFFFD,
}

-- Return a text as UTF-8, and true if it is not written in the encoding.
function K.decoded(text, encoding)
  if encoding == "latin-1" then
    return (text:gsub("[\128-\255]", function(byte) return K.utf8_char(byte:byte()) end)), false
  end
  if encoding == "windows" then
    if not K.not_utf8(text) then return text, false end
    return (text:gsub("[\128-\255]", function(byte)
      local code = byte:byte()
      return K.utf8_char(WINDOWS[code] or code)
    end)), false
  end
  if encoding == "ascii" then return text, text:find("[\128-\255]") ~= nil end
  return text, K.not_utf8(text) ~= nil
end

-- Return the first characters of a text, with one byte for each of them: those beyond ASCII are all alike.
function K.characters(text, count)
  return (text:gsub("[\194-\244][\128-\191]*", "\128"):sub(1, count or -1))
end

-- Each invalid byte becomes U+FFFD.
function K.replaced(text)
  local parts, at = {}, 1
  while true do
    local wrong = K.not_utf8(text, at)
    parts[#parts + 1] = text:sub(at, (wrong or #text + 1) - 1)
    if wrong == nil then return table.concat(parts) end
    parts[#parts + 1] = "\239\191\189"
    at = wrong + 1
  end
end

function K.split(text, separator)
  local parts, at = {}, 1
  while true do
    local start, stop = text:find(separator, at, true)
    if start == nil then break end
    parts[#parts + 1] = text:sub(at, start - 1)
    at = stop + 1
  end
  parts[#parts + 1] = text:sub(at)
  return parts
end

-- Return the end without these bytes, and the start without them.
function K.stripped(text, start, stop, set)
  while stop > start and text:find("^[" .. set .. "]", stop - 1) do stop = stop - 1 end
  local first = start
  while first < stop and text:find("^[" .. set .. "]", first) do first = first + 1 end
  return stop, first
end

function K.read(kind, value)
  return K.types[kind.kind](kind, value)
end

function K.rows(protocol, direction, name)
  return protocol.rows[direction][name]
end

-- Return the message name for what was sent, which may be the digits of a code.
function K.name_of(protocol, direction, sent)
  local names = protocol.names[direction]
  return names[sent] or (sent:find("^%d+$") and names["#" .. sent:gsub("^0+(%d)", "%1")]) or nil
end

local function unknown(sent)
  return {error = '"' .. sent:sub(1, 40) .. '" is not a known message name'}
end
K.unknown = unknown

-- Show a value in the tree: one item for each scalar, under the name of its path.
local function show(protocol, parent, range, path, node, from)
  local field = protocol.hf[path]
  local own = range
  if node.at and node.stop and node.stop > node.at then
    local first = from + node.at - 1
    if first + node.stop - node.at <= range:len() then own = range(first, node.stop - node.at) end
  end
  if node.t == "list" then
    for _, item in ipairs(node) do show(protocol, parent, range, path, item, from) end
  elseif node.t == "object" then
    local branch = parent
    if path ~= "" then
      branch = parent:add(own, protocol.titles[path] or path)
    end
    for _, member in ipairs(node) do
      local inner = path == "" and member.key or path .. "." .. member.key
      show(protocol, branch, range, inner, member.value, from)
    end
  elseif field == nil then
    if node.t ~= "null" then parent:add(own, path .. ": " .. tostring(node.v)) end
  elseif node.t == "null" then
    if protocol.kinds[path] == "string" then parent:add(field, own, "") end
  else
    local kind, value = protocol.kinds[path], node.v
    if kind == "int" then
      if node.t == "i" and math.abs(tonumber(value)) < 9223372036854775807 then
        parent:add(field, own, Int64.new(value))
      else parent:add(own, path .. ": " .. tostring(value)) end
    elseif kind == "uint" then
      if node.t == "i" then parent:add(field, own, UInt64.new(value)) end
    elseif kind == "float" then parent:add(field, own, tonumber(value))
    elseif kind == "bool" then parent:add(field, own, value)
    else parent:add(field, own, (tostring(value):gsub("%z", "\226\144\128"))) end
  end
end

-- Add a distance to the offsets of a value and of its parts.
function K.move(node, distance)
  if node.at then node.at, node.stop = node.at + distance, node.stop + distance end
  if node.t == "list" then
    for _, item in ipairs(node) do K.move(item, distance) end
  elseif node.t == "object" then
    for _, member in ipairs(node) do K.move(member.value, distance) end
  end
end

-- Return a message; one without a known name may be of the rows for that.
local function message_of(protocol, frame, direction, name)
  local read = K.formats[protocol.format.kind]
  if name then return read(protocol, frame, direction, name) end
  local has_names = false
  for each in pairs(protocol.rows[direction]) do has_names = has_names or each ~= "_" end
  local message = has_names and read(protocol, frame, direction) or {}
  if message.name or not protocol.rows[direction]["_"] then return message end
  local other = read(protocol, frame, direction, "_")
  return (other.error and has_names) and message or other
end

function K.message_in(protocol, frame, direction)
  local formats = protocol.formats or protocol.format.formats
  if formats then protocol.formats, protocol.format = formats, formats[direction] or protocol.format end
  local read = message_of
  local framing, head, unknown = protocol.framing, nil, nil
  if framing.before then head = K.before(framing, frame)
  elseif #(framing.header or "") == 0 then return read(protocol, frame, direction)
  else head, unknown = K.header(protocol, frame, direction) end
  if head == nil then return unknown end
  local message = read(protocol, frame:sub(head.start), direction, head.name)
  if message.name == nil then return message end
  local fields = head.fields
  for _, each in ipairs(message.fields or {}) do
    K.move(each.value, head.start - 1)
    fields[#fields + 1] = each
  end
  message.fields, message.error = fields, head.error or message.error
  return message
end

-- Return the message of bytes next to missing ones.
local function cut()
  return {}
end

local function present(protocol, tvb, pinfo, tree, at, stop, direction, read)
  local frame = tvb:raw(at - 1, stop - at)
  local good, message = pcall(read or K.message_in, protocol, frame, direction)
  if not good then message = {error = "this message cannot be read: " .. tostring(message)} end
  if message.nothing then return end
  local range = tvb(at - 1, stop - at)
  if stop == at then range = tvb(0) end
  local name = message.name or "unreadable"
  local item = tree:add(protocol.proto, range, protocol.title .. ", " .. name)
  item:add(protocol.hf_name, range, name)
  item:add(protocol.hf_direction, range, direction)
  if protocol.hf_messages[name] then item:add(protocol.hf_messages[name], range):set_hidden() end
  for _, each in ipairs(message.fields or {}) do
    show(protocol, item, range, each.key, each.value, 0)
  end
  if message.error then
    item:add_proto_expert_info(protocol.malformed, message.error)
  end
  pinfo.cols.info:append(name .. (message.error and " (malformed)  " or "  "))
end

local function contains(range, port)
  for part in range:gmatch("[^,%s]+") do
    local first, last = part:match("^(%d+)%-(%d+)$")
    first = tonumber(first or part)
    last = tonumber(last) or first
    if first and port >= first and port <= last then return true end
  end
  return false
end

local function direction_of(protocol, pinfo)
  local ports = tostring(protocol.proto.prefs.ports)
  if contains(ports, pinfo.dst_port) then return "c2s" end
  if contains(ports, pinfo.src_port) then return "s2c" end
  -- Decode As: the port that matched is the server's.
  return tonumber(pinfo.match) == pinfo.src_port and "s2c" or "c2s"
end

local tcp_stream, tcp_fin = Field.new("tcp.stream"), Field.new("tcp.flags.fin")
local tcp_reset, tcp_len = Field.new("tcp.flags.reset"), Field.new("tcp.len")
local tcp_lost = Field.new("tcp.analysis.lost_segment")
-- Wireshark 3.6 and later; earlier ones show the first message of a connection that began before the capture
-- like any other.
local has_completeness, tcp_completeness = pcall(Field.new, "tcp.completeness")
local SYN = {c2s = 1, s2c = 2}

local function sender_of(pinfo)
  return tostring(pinfo.src) .. ":" .. pinfo.src_port
end

-- Return the state of a direction of this packet's connection; a later look at a packet finds its former one.
-- `rest` are the bytes of an incomplete message; `seeking` is true after missing bytes, up to a message's start.
local function state_of(protocol, pinfo, direction)
  local key = tostring(tcp_stream()) .. direction
  local state = protocol.states[key]
  if state == nil then
    local begun = has_completeness and tcp_completeness()
    local seeking = begun and math.floor(begun.value / SYN[direction]) % 2 == 0
    state = {rest = "", sender = sender_of(pinfo), seeking = seeking}
    protocol.states[key] = state
  end
  return state
end

-- Return the starts of the frames in data, and the offset of the bytes after them, which is the last start, too.
local function starts_of(protocol, data, direction, seeking)
  local frame_end = K.framings[protocol.framing.kind]
  local starts, at = {1}, 1
  while at <= #data do
    local stop = frame_end(protocol.framing, data, at, direction, seeking, protocol)
    if stop == nil and #data - at > FRAME_LIMIT then stop = #data + 1 end
    if stop == nil then break end
    starts[#starts + 1], at, seeking = stop, stop, false
  end
  return starts, at
end

local function present_frames(protocol, tvb, pinfo, tree, direction, starts, seeking)
  for number = 1, #starts - 1 do
    local at, stop = starts[number], starts[number + 1]
    if stop > at then
      present(protocol, tvb, pinfo, tree, at, stop, direction, number == 1 and seeking and cut or nil)
    end
  end
end

-- Show the bytes that Wireshark still held back for reassembly, of which the last ones are no whole message.
local function present_rest(protocol, pinfo, tree, rest, direction, seeking, read)
  if rest == "" then return end
  local tvb = ByteArray.new(rest, true):tvb("Incomplete message")
  local starts, at = starts_of(protocol, rest, direction, seeking)
  present_frames(protocol, tvb, pinfo, tree, direction, starts, seeking)
  if at <= #rest then
    present(protocol, tvb, pinfo, tree, at, #rest + 1, direction, #starts == 1 and seeking and cut or read)
  end
end

-- Show the message before missing bytes. Return the direction's state, and true if the data may begin in the
-- middle of a message.
local function resume(protocol, pinfo, tree, data, direction)
  local key = pinfo.number .. ":" .. #data
  local found = pinfo.visited and protocol.seen[key]
  local state = found and {} or state_of(protocol, pinfo, direction)
  if not found then
    found = {rest = "", seeking = state.seeking}
    if tcp_lost() and (state.rest == "" or data:sub(1, #state.rest) ~= state.rest) then
      found = {rest = state.rest, rest_seeking = state.seeking, seeking = true}
    end
    protocol.seen[key] = found
    state.rest, state.seeking = "", found.seeking
  end
  present_rest(protocol, pinfo, tree, found.rest, direction, found.rest_seeking, cut)
  return state, found.seeking
end

local function dissect_stream(protocol, tvb, pinfo, tree, direction)
  local data, state, seeking = tvb:raw(), {}, false
  if K.truncated[protocol.format.kind] then
    state, seeking = resume(protocol, pinfo, tree, data, direction)
  end
  local starts, at = starts_of(protocol, data, direction, seeking)
  if at <= #data and not (data:find("^[ \t\r\n]*$", at) and protocol.framing.skips_blanks) then
    local before = #data - tcp_len().value
    if K.truncated[protocol.format.kind] and before > 0 and at - 1 <= before then
      -- Wireshark will pass all of the data again, with the next segment.
      starts, at = {1}, 1
    end
    state.rest = data:sub(at)
    pinfo.desegment_offset = at - 1
    pinfo.desegment_len = DESEGMENT_ONE_MORE_SEGMENT
  end
  if #starts > 1 then state.seeking = false end
  present_frames(protocol, tvb, pinfo, tree, direction, starts, seeking)
end

-- Show the incomplete messages that a packet with FIN or RST ends: Wireshark passes them to no dissector.
local function register_end(protocol)
  local proto = Proto(protocol.protocol .. "_end", protocol.title .. " at the end of a connection")
  function proto.dissector(tvb, pinfo, tree)
    if not (tcp_stream() and (tcp_fin().value or tcp_reset().value)) then return end
    local ended = protocol.seen[pinfo.number]
    if ended == nil then
      ended = {}
      for _, direction in ipairs({"c2s", "s2c"}) do
        local state = protocol.states[tostring(tcp_stream()) .. direction]
        if state and (state.sender == sender_of(pinfo) or tcp_reset().value) then
          ended[direction] = {state.rest, state.seeking}
          state.rest = ""
        end
      end
      protocol.seen[pinfo.number] = ended
    end
    for direction, each in pairs(ended) do
      present_rest(protocol, pinfo, tree, each[1], direction, each[2], K.truncated[protocol.format.kind])
    end
  end
  register_postdissector(proto)
end

function K.register(protocol)
  local proto = Proto(protocol.protocol, protocol.title)
  local makers = {
    string = ProtoField.string, int = ProtoField.int64, uint = ProtoField.uint64,
    float = ProtoField.double, bool = ProtoField.bool, none = ProtoField.none,
  }
  local all = {}
  local function field(kind, abbreviation, title)
    local made = makers[kind](abbreviation, title)
    all[#all + 1] = made
    return made
  end
  protocol.proto, protocol.hf, protocol.kinds, protocol.titles = proto, {}, {}, {}
  protocol.hf_messages = {}
  protocol.hf_name = field("string", protocol.message_name, "Message")
  protocol.hf_direction = field("string", protocol.message_direction, "Direction")
  for _, each in ipairs(protocol.fields) do
    protocol.titles[each.path] = each.title
    protocol.kinds[each.path] = each.type
    if each.type ~= "object" then
      protocol.hf[each.path] = field(each.type, each.name, each.title)
    end
  end
  for _, each in ipairs(protocol.presence) do
    protocol.hf_messages[each.message] = field("none", each.name, each.message)
  end
  proto.fields = all
  protocol.malformed = ProtoExpert.new(
    protocol.protocol .. ".malformed", "Malformed message", expert.group.MALFORMED, expert.severity.ERROR)
  proto.experts = {protocol.malformed}

  protocol.rows, protocol.names, protocol.framing.protocol = {}, {}, protocol
  for _, direction in ipairs({"c2s", "s2c"}) do
    local rows, names = {}, {}
    for _, row in ipairs(protocol.messages[direction]) do
      for _ = 1, protocol.framing.own or 0 do table.remove(row.fields, 1) end
      rows[row.name] = rows[row.name] or {}
      table.insert(rows[row.name], row)
      local sent = row.sent or row.code and "#" .. row.code or row.name
      names[sent] = names[sent] or row.name
    end
    protocol.rows[direction], protocol.names[direction] = rows, names
  end

  function proto.dissector(tvb, pinfo, tree)
    pinfo.cols.protocol = protocol.title
    pinfo.cols.info:clear()
    local direction = direction_of(protocol, pinfo)
    if protocol.transport == "udp" or protocol.table then
      present(protocol, tvb, pinfo, tree, 1, tvb:captured_len() + 1, direction)
    else
      dissect_stream(protocol, tvb, pinfo, tree, direction)
    end
    pinfo.cols.info:fence()
    return tvb:captured_len()
  end

  protocol.states, protocol.seen = {}, {}
  function proto.init()
    protocol.states, protocol.seen = {}, {}
  end
  if K.truncated[protocol.format.kind] then register_end(protocol) end

  -- In a table of another dissector, such as ws.port, each call has a message.
  local tables = DissectorTable.get(protocol.table or protocol.transport .. ".port")
  proto.prefs.ports = Pref.range("Server ports", protocol.ports, "Ports of the servers", 65535)
  local bound = protocol.ports
  if bound ~= "" then tables:add(bound, proto) end
  if not protocol.table then tables:add_for_decode_as(proto) end
  function proto.prefs_changed()
    local wanted = tostring(proto.prefs.ports)
    if wanted ~= bound then
      if bound ~= "" then tables:remove(bound, proto) end
      if wanted ~= "" then tables:add(wanted, proto) end
      bound = wanted
    end
  end
end
