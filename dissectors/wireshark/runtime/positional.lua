-- Messages that are a name and fields in a fixed order, with blanks or a delimiter between them.

-- Return the tokens of a text: text, start and end.
local function tokens_of(format, text)
  if format.tokenizer then return K.tokenizers[format.tokenizer](text) end
  local found, at, quote = {}, 1, format.quote
  local has_escapes = text:find("\\", 1, true) ~= nil
  local function quoted()
    if quote == nil or quote == "" or text:sub(at, at + #quote - 1) ~= quote then return nil end
    local parts, from = {}, at + #quote
    while true do
      local mark = text:find(quote, from, true)
      local escape = has_escapes and text:find("\\", from, true) or nil
      has_escapes = escape ~= nil
      if mark == nil then return nil end
      if escape == nil or mark < escape then
        parts[#parts + 1] = text:sub(from, mark - 1)
        return table.concat(parts), mark + #quote
      end
      local escaped = text:sub(escape + 1, escape + 1)
      local is_mark = escaped == "\\" or escaped == quote
      parts[#parts + 1] = text:sub(from, escape - (is_mark and 1 or 0)) .. escaped
      from = escape + 2
    end
  end
  if format.words then
    local blanks = format.blanks
    while true do
      at = text:find("[^" .. blanks .. "]", at)
      if at == nil then return found end
      local value, stop = quoted()
      if value == nil then
        stop = text:find("[" .. blanks .. "]", at) or #text + 1
        value = text:sub(at, stop - 1)
      end
      found[#found + 1] = {text = value, at = at, stop = stop}
      at = stop
    end
  end
  while true do
    local value, stop = quoted()
    if value == nil then
      stop = text:find(format.delimiter, at, true) or #text + 1
      value = text:sub(at, stop - 1)
    end
    local token = {text = value, at = at, stop = stop}
    if format.delimiter == "\n" then token.text = token.text:gsub("\r$", "") end
    found[#found + 1] = token
    local _, after = text:find(format.delimiter, stop, true)
    if after == nil then return found end
    at = after + 1
  end
end

local function takes_rest(format, field)
  return field.type.kind == "rest" or (field.type.kind == "list" and field.type.separator == format.delimiter)
end

local function tail_of(format, row)
  local last = row.fields[#row.fields]
  return format.optional == "count" and last and takes_rest(format, last) and last or nil
end

-- Read the fields of a row; return them, the number read, and what is wrong.
local function read_row(format, row, text, tokens, first)
  local tail = tail_of(format, row)
  local count, required = #row.fields - (tail and 1 or 0), 0
  for number = 1, count do
    if not row.fields[number].optional then required = required + 1 end
  end
  local spare = #tokens - first + 1 - required
  local fields, at = {}, first
  for number = 1, count do
    local field = row.fields[number]
    if field.optional and spare <= 0 then
      -- Left out.
    elseif tokens[at] == nil then
      return fields, field.name .. " is missing", #fields
    else
      if field.optional then spare = spare - 1 end
      local token = tokens[at]
      local value, problem = K.read(field.type, token.text)
      if token.text == "" and format.filled then value, problem = nil, "there is nothing here" end
      if value == nil and not (field.optional and token.text == "") then
        return fields, field.name .. ": " .. problem, #fields
      end
      if value then
        value.at, value.stop = token.at, token.stop
        fields[#fields + 1] = {key = field.name, value = value}
      end
      at = at + 1
    end
  end
  if tail then
    local node, from
    if tail.type.kind == "list" then
      node = {t = "list"}
      for number = at, #tokens do
        local value, problem = K.read(tail.type.item, tokens[number].text)
        if value == nil then return fields, tail.name .. ": " .. problem, #fields end
        value.at, value.stop = tokens[number].at, tokens[number].stop
        node[#node + 1] = value
      end
    else
      from = tokens[at - 1].stop
      from = from > #text and from or from + (format.words and 1 or #format.delimiter)
      node = K.scalar("s", text:sub(from), from, #text + 1)
    end
    if at <= #tokens or not tail.optional then fields[#fields + 1] = {key = tail.name, value = node} end
  elseif at <= #tokens then
    local only = at == #tokens and tokens[at].text == "" and not format.words and format.optional == "count"
    if not only then return fields, "there are more fields than expected", #fields, true end
  end
  return fields, nil, #fields
end

local function name_in(protocol, tokens, direction)
  local longest, count = nil, 0
  if protocol.format.words then
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

function K.formats.positional(protocol, frame, direction)
  local format, start, stop, whole = protocol.format, 1, #frame + 1, true
  if format.optional == "count" then start, stop, whole = K.body(protocol, frame)
  elseif format.line_end then
    if format.tokenizer and #frame > 1 and frame:sub(1, 1) == "\n" then start = 2 end
    stop = K.stripped(frame, start, stop, "\r\n")
  end
  if not whole then return {error = "the length does not fit"} end
  local text, wrong = K.decoded(frame:sub(start, stop - 1), format.encoding)
  if wrong then text = K.replaced(text) end
  local tokens = tokens_of(format, text)
  if tokens[1] == nil or (text == "" and format.optional == "count") then
    return {error = format.optional == "exact" and "this line has no message" or nil}
  end
  local name, taken = name_in(protocol, tokens, direction)
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
  local count = #tokens - taken
  for _, exact in ipairs({true, false}) do
    for _, row in ipairs(rows) do
      local fits = true
      if format.optional == "exact" then
        local required = 0
        for _, field in ipairs(row.fields) do required = required + (field.optional and 0 or 1) end
        fits = (count >= required and count <= #row.fields) == exact
      elseif not exact then fits = false end
      if fits then
        local fields, problem, number, surplus = read_row(format, row, text, tokens, taken + 1)
        if surplus and format.ignores_surplus then problem = nil end
        if problem == nil then
          return {name = name, fields = shifted(fields), error = wrong and "this is not UTF-8" or nil}
        end
        if best == nil or number > best_count then best, best_count, best_problem = fields, number, problem end
      end
    end
  end
  return {name = name, fields = shifted(best or {}), error = name .. ": " .. (best_problem or "malformed")}
end
