-- Messages that are a name and fields in a fixed order, with blanks or a delimiter between them.

-- Read the fields of a row; return them, the number read, and what is wrong.
local function read_row(format, row, text, tokens, first)
  local fields = {}
  local spans, used = K.spans(row.fields, #tokens - first + 1)
  for _, span in ipairs(spans) do
    local field, kind = span.field, span.field.type
    local at, upto = first + span.first - 1, first + span.last - 1
    if upto > #tokens then return fields, field.name .. " is missing", #fields end
    local value, problem
    if kind.kind == "rest" then
      local from = at > 1 and tokens[at - 1].stop or 1
      from = (from > #text or at == 1) and from or from + #format.separator
      value = K.scalar("s", text:sub(from), from, #text + 1)
    elseif kind.spread then
      local texts = {}
      for number = at, upto do texts[#texts + 1] = tokens[number].text end
      value, problem = K.read_texts(kind, texts)
      for number, item in ipairs(value and not kind.fields and not kind.item.spread and value or {}) do
        item.at, item.stop = tokens[at + number - 1].at, tokens[at + number - 1].stop
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
    for _, field in ipairs(fields) do
      if field.value.at then
        field.value.at, field.value.stop = field.value.at + start - 1, field.value.stop + start - 1
      end
    end
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
