-- Messages that are a name and fields in a fixed order, with blanks or a delimiter between them.

-- Return true if a field on a line of its own is in the first line, or another one is not.
local function misplaced(spans, tokens, first)
  for _, span in ipairs(spans) do
    for number = first + span.first - 1, math.min(first + span.last - 1, #tokens) do
      if (tokens[number].is_line or false) ~= (span.field.on_lines or false) then return true end
    end
  end
  return false
end

-- Read the fields of a row; return them, the number read, and what is wrong.
local function read_row(format, row, text, tokens, first)
  local fields, sent = {}, {}
  for number = first, #tokens do sent[#sent + 1] = tokens[number].text end
  local spans, used = K.spans(row.fields, sent)
  if format.has_lines and first <= #tokens and misplaced(spans, tokens, first) then
    return fields, "a field is not on its line", 0
  end
  for _, span in ipairs(spans) do
    local field, kind = span.field, span.field.type
    local at, upto = first + span.first - 1, first + span.last - 1
    if upto > #tokens then return fields, field.name .. " is missing", #fields end
    local value, problem
    if kind.kind == "rest" then
      local from = at > 1 and tokens[at - 1].stop or 1
      from = (from > #text or at == 1) and from or from + #format.separator
      local before = kind.before or ""
      if text:sub(from, from + #before - 1) == before then
        value = K.scalar("s", text:sub(from + #before), from, #text + 1)
      else problem = "this has another form" end
    elseif kind.spread then
      local texts = {}
      for number = at, upto do texts[#texts + 1] = tokens[number].text end
      value, problem = K.read_texts(kind, texts)
      if value and upto >= at then
        value.at, value.stop = tokens[at].at, tokens[upto].stop
        K.place(value, tokens, at)
      end
    else
      value, problem = K.read(kind, tokens[at].text)
      if tokens[at].text == "" and format.filled then value, problem = nil, "there is nothing here" end
      if value then value.at, value.stop = tokens[at].at, tokens[at].stop end
    end
    if value then fields[#fields + 1] = {key = field.name, value = value}
    elseif not (field.optional and tokens[at].text == "") then
      return fields, field.name .. ": " .. problem, #fields
    end
  end
  local at = first + used
  if at <= #tokens and not (at == #tokens and tokens[at].text == "" and not format.blanks) then
    return fields, "there are more fields than expected", #fields, true
  end
  return fields, nil, #fields
end

local function name_in(protocol, tokens, direction)
  local longest, count = nil, 0
  if protocol.format.blanks then
    for sent, name in pairs(protocol.names[direction]) do
      local words = K.split(sent, " ")
      if #words > 1 and #words > count then
        local same = true
        for number, word in ipairs(words) do
          same = same and tokens[number] ~= nil and tokens[number].text == word
        end
        if same then longest, count = name, #words end
      end
    end
  end
  if longest then return longest, count end
  return K.name_of(protocol, direction, tokens[1].text), 1
end

function K.formats.positional(protocol, frame, direction, name)
  local format = protocol.format
  local start, stop = K.body(protocol, frame)
  local text, wrong = K.decoded(frame:sub(start, stop - 1), format.encoding)
  if wrong then text = K.replaced(text) end
  local tokens, taken = text ~= "" and K.tokens(format, text) or {}, 0
  if name == nil then
    if tokens[1] == nil then return {error = not format.skips_empty and "there is no message" or nil} end
    name, taken = name_in(protocol, tokens, direction)
  end
  if name == nil then return wrong and {error = "this is not UTF-8"} or K.unknown(tokens[1].text) end
  local rows = K.rows(protocol, direction, name)
  local function shifted(fields)
    for _, field in ipairs(fields) do K.move(field.value, start - 1) end
    return fields
  end
  local best, best_count, best_problem
  for _, allowed in ipairs(format.ignores_surplus and {false, true} or {false}) do
    for _, row in ipairs(rows) do
      local fields, problem, number, surplus = read_row(format, row, text, tokens, taken + 1)
      if problem == nil or (surplus and allowed) then
        return {name = name, fields = shifted(fields), error = wrong and "this is not UTF-8" or nil}
      end
      if best == nil or number > best_count then best, best_count, best_problem = fields, number, problem end
    end
  end
  return {name = name, fields = shifted(best or {}), error = name .. ": " .. (best_problem or "malformed")}
end

local function line_at(data, at)
  local stop = data:find("\n", at, true)
  if stop == nil then return nil end
  return (data:sub(at, stop - 1):gsub("\r$", "")), stop + 1
end

-- Return the rows of the message that begins with a line, and the texts of its fields in it.
local function begun(protocol, framing, direction, line)
  local format = (protocol.formats or protocol.format.formats or {})[direction] or protocol.format
  local start = framing.before and K.before(framing, line).start or 1
  if framing.header then start = (K.header(protocol, line, direction) or {start = #line + 1}).start end
  local tokens, texts = K.tokens(format, line:sub(start)), {}
  if tokens[1] == nil then return {}, texts end
  local name, taken = name_in({format = format, names = protocol.names}, tokens, direction)
  for number = (taken or 1) + 1, #tokens do texts[#texts + 1] = tokens[number].text end
  return name and protocol.rows[direction][name] or {}, texts
end

-- Return the first field that lacks lines, and how many.
local function wanted(row, texts)
  for _, span in ipairs(K.spans_in(row.fields, texts, 1)) do
    if span.last > #texts then return span.field.type, span.last - #texts end
  end
  return nil, 0
end

-- Messages of one or several lines.
function K.framings.line_fields(framing, data, at, direction, seeking, protocol)
  local line, after = line_at(data, at)
  if line == nil then return nil end
  local rows, texts = begun(protocol, framing, direction, line)
  for _, row in ipairs(rows) do
    local head, has_lines = {}, false
    for _, field in ipairs(row.fields) do
      if field.on_lines then has_lines = true else head[#head + 1] = field end
    end
    local spans = K.spans_in(head, texts, 1)
    if has_lines and (#spans > 0 and spans[#spans].last or 0) == #texts then
      local kind, count = wanted(row, texts)
      while count > 0 do
        line, at = line_at(data, after), after
        if line == nil then return nil end
        local item = kind["until"] ~= line and (kind.item or kind)
        if item and not item.spread and K.read(item, line) == nil and #begun(protocol, framing, direction, line) > 0 then
          return at
        end
        _, after = line_at(data, at)
        texts[#texts + 1], count = line, count - 1
        if count == 0 and (kind["until"] == nil or line == kind["until"]) then kind, count = wanted(row, texts)
        elseif count == 0 then count = 1 end
      end
      return after
    end
  end
  return after
end
