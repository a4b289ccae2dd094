-- Types of values that are sent as text. Each returns a node, or nil and what is wrong.

-- Return the tokens of a text; an empty one without a padding is lost.
local function padded(form, text)
  local found, parts, quoted, start, at = {}, {}, false, 1, 1
  local function add(part)
    if part ~= "" then parts[#parts + 1] = part end
  end
  local function finish(stop)
    if #parts == 0 then return end
    local token = table.concat(parts)
    if quoted and form.pads:find(token:sub(-1), 1, true) then token = token:sub(1, -2) end
    found[#found + 1] = {text = token, at = start, stop = stop}
    parts, quoted = {}, false
  end
  while at <= #text do
    local mark = text:sub(at, at)
    if mark == " " then
      finish(at)
      at = text:find("[^ ]", at) or #text + 1
    else
      if #parts == 0 then start = at end
      if mark == '"' then
        local inner, from = {}, at + 1
        while true do
          local stop = text:find('["\\]', from)
          if stop == nil then return found end
          inner[#inner + 1] = text:sub(from, stop - 1)
          if text:sub(stop, stop) == '"' then
            at = stop + 1
            break
          end
          if text:sub(stop + 1, stop + 1) == '"' then
            inner[#inner + 1] = '"'
            from = stop + 2
          else
            inner[#inner + 1] = "\\"
            from = stop + 1
          end
        end
        quoted = true
        add(table.concat(inner))
      else
        local stop = text:find('[ "]', at) or #text + 1
        add(text:sub(at, stop - 1))
        at = stop
      end
    end
  end
  finish(#text + 1)
  return found
end

-- Return the tokens of the first line, and each further line.
local function with_lines(form, text)
  local stop = text:find("\n", 1, true) or #text + 1
  local head = {separator = form.separator, blanks = form.blanks, quote = form.quote}
  local found = K.tokens(head, (text:sub(1, stop - 1):gsub("\r$", "")))
  if stop > #text then return found end
  for _, token in ipairs(K.tokens({separator = "\n"}, text:sub(stop + 1))) do
    token.at, token.stop, token.is_line = token.at + stop, token.stop + stop, true
    found[#found + 1] = token
  end
  return found
end

-- Return the tokens of a text: text, start and end. A form is a format, or a type with parts.
-- Tokens without anything between them: each is the longest text that its type accepts.
local function cut(kind, text)
  local found, starts, at = {}, {}, 1
  for start in text:gmatch("()[%z\1-\127\194-\244][\128-\191]*") do starts[#starts + 1] = start end
  local count, last = #starts, #kind.cut
  starts[count + 1] = #text + 1
  while at <= count do
    local number = math.min(#found + 1, last)
    local each, after = kind.fields and kind.fields[number].type or kind.item, at + 1
    local most = math.min(kind.cut[number], count - at + 1)
    if last > 1 and #found + 1 == last and K.read(each, text:sub(starts[at])) then after = count + 1
    else
      for size = most, 2, -1 do
        if K.read(each, text:sub(starts[at], starts[at + size] - 1)) then after = at + size break end
      end
    end
    found[#found + 1] = {text = text:sub(starts[at], starts[after] - 1), at = starts[at], stop = starts[after]}
    at = after
  end
  return found
end

function K.tokens(form, text)
  if form.cut then return cut(form, text) end
  if form.pads then return padded(form, text) end
  if form.has_lines then return with_lines(form, text) end
  local found, at, quote = {}, 1, form.quote
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
  if form.blanks then
    local blanks = form.blanks
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
      local is_last = form.splits ~= nil and #found >= form.splits
      stop = not is_last and text:find(form.separator, at, true) or #text + 1
      value = text:sub(at, stop - 1)
    end
    local token = {text = value, at = at, stop = stop}
    if form.separator == "\n" then token.text = token.text:gsub("\r$", "") end
    found[#found + 1] = token
    local _, after = text:find(form.separator, stop, true)
    if after == nil then return found end
    at = after + 1
  end
end

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

-- A part of a value is one token.
K.types.rest = K.types.text

function K.types.number(kind, text)
  if kind.before then
    if text:sub(1, #kind.before) ~= kind.before then return nil, kind.before .. "is expected" end
    text = text:sub(#kind.before + 1)
  end
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

local function part(texts, first, last)
  local found = {}
  for number = first, last do found[#found + 1] = texts[number] end
  return found
end

-- Return true if the message shows how many tokens a value takes.
function K.is_counted(kind)
  return kind.spread and (kind.count or kind["until"] or kind.counted or (kind.item and K.is_counted(kind.item)))
end

-- Return the least and the greatest number of tokens of a message that a value takes.
function K.width(kind)
  if kind.kind == "rest" then return 0, nil end
  if not kind.spread then return 1, 1 end
  if kind.tokens then return kind.tokens, kind.tokens end
  if kind.fields then
    local least, most = 0, 0
    for _, field in ipairs(kind.fields) do
      local low, high = K.width(field.type)
      least, most = least + low, most and high and most + high
    end
    return least, most
  end
  local size = K.width(kind.item)
  return (kind.least or 0) * size + (kind["until"] and 1 or 0), kind.most and kind.most * size
end

-- Return the end of the tokens of a value that begins at one; some may be missing. `numbers` are those beside it.
local function end_in(kind, texts, at, numbers)
  if K.is_counted(kind) and kind.fields then
    local spans = K.spans_in(kind.fields, texts, at)
    return spans[#spans].last + 1
  end
  if not K.is_counted(kind) then
    local least, most = K.width(kind)
    return at + math.max(least, math.min(#texts - at + 1, most or #texts))
  end
  if kind["until"] then
    while at <= #texts and texts[at] ~= kind["until"] do at = end_in(kind.item, texts, at, {}) end
    return at + 1
  end
  local left = numbers[kind.count]
  if left == nil then return math.max(at, #texts + 1) end
  while left > 0 and at <= #texts + 1 do
    at, left = math.max(end_in(kind.item, texts, at, {}), at + 1), left - 1
  end
  return at
end

-- Return the fields whose tokens begin at one, each with its first and last token; those of counted lists may exceed
-- the tokens that there are.
function K.spans_in(fields, texts, at)
  local spans, numbers = {}, {}
  for _, field in ipairs(fields) do
    local stop, text = end_in(field.type, texts, at, numbers), texts[at] or ""
    if stop == at + 1 and text:find("^%d+$") and #text < 10 then numbers[field.name] = tonumber(text) end
    spans[#spans + 1] = {field = field, first = at, last = stop - 1}
    at = stop
  end
  return spans
end

-- Return the fields of a message with these tokens after its name, each with its first and last token, and the number
-- of tokens of all. If optional fields are absent, these are the last ones.
function K.spans(fields, texts)
  local spare, spans, at, is_counted = #texts, {}, 1, false
  for _, field in ipairs(fields) do
    if not field.optional then spare = spare - K.width(field.type) end
    is_counted = is_counted or K.is_counted(field.type)
  end
  if is_counted then
    local used = 0
    for _, span in ipairs(K.spans_in(fields, texts, 1)) do
      if not span.field.optional or span.first <= #texts then
        spans[#spans + 1], used = span, math.max(used, span.last)
      end
    end
    return spans, used
  end
  for _, field in ipairs(fields) do
    local least, most = K.width(field.type)
    if field.optional then least = math.max(least, 1) end
    if not field.optional or spare >= least then
      if field.optional then spare = spare - least end
      local more = math.max(spare, 0)
      if most then more = math.min(more, most - least) end
      spare = spare - more
      spans[#spans + 1] = {field = field, first = at, last = at + least + more - 1}
      at = at + least + more
    end
  end
  return spans, at - 1
end

-- Give the parts of a value the places of their tokens, of which the value's first one has this number.
function K.place(node, tokens, first)
  for _, each in ipairs(node) do
    local value = each.value or each
    if value.first and value.last >= value.first then
      local from, upto = first + value.first - 1, first + value.last - 1
      value.at, value.stop = tokens[from].at, tokens[upto].stop
      if value.spread then K.place(value, tokens, from) end
    end
  end
end

local function read_part(kind, texts, first, last)
  local value, problem, token
  if kind.spread then value, problem, token = K.read_texts(kind, part(texts, first, last))
  else value, problem = K.read(kind, texts[first]) end
  if value == nil then return nil, problem, first + (token or 1) - 1 end
  value.first, value.last, value.spread = first, last, kind.spread
  return value
end

local function read_list(kind, texts)
  local node, at, upto = {t = "list"}, 1, #texts
  local size = K.width(kind.item)
  if kind["until"] then
    if texts[upto] ~= kind["until"] then return nil, "there is no " .. kind["until"], math.max(upto, 1) end
    upto = upto - 1
  elseif not K.is_counted(kind) then
    local count = math.ceil(#texts / size)
    if count < (kind.least or 0) or count > (kind.most or count) then
      return nil, "this list has another length", kind.least and 1 or (kind.most or 0) * size + 1
    end
  end
  while at <= upto do
    local stop = K.is_counted(kind.item) and end_in(kind.item, texts, at, {}) or at + size
    local value, problem, token
    if kind.nulls and texts[at] == "" then value = K.scalar("null")
    else value, problem, token = read_part(kind.item, texts, at, math.min(stop - 1, upto)) end
    if value == nil then return nil, problem, token end
    node[#node + 1], at = value, stop
  end
  return node
end

-- Read a value from the texts of its tokens; return it, or nil, what is wrong, and the number of the wrong token.
function K.read_texts(kind, texts)
  if kind.tokens then
    local value, problem = K.read(kind, table.concat(texts, kind.separator))
    if value then return value end
    return nil, problem, kind.values and K.begins(kind, texts[1]) and 2 or 1
  end
  if kind.kind == "list" then return read_list(kind, texts) end
  local node, at, spans = {t = kind.kind}, 1, kind.counted and K.spans_in(kind.fields, texts, 1)
  if #texts < kind.least then return nil, "a part is missing", #texts + 1 end
  for number, field in ipairs(kind.fields) do
    local last = spans and spans[number].last or field.type.spread and #texts or at
    if spans and last > #texts then return nil, field.name .. " has fewer items than its number says", #texts end
    if texts[at] == nil and not field.type.spread then return node end
    local value, problem, token = read_part(field.type, texts, at, last)
    if value == nil then return nil, problem, token end
    node[#node + 1], at = {key = field.name, value = value}, last + 1
  end
  if at <= #texts then return nil, "there is more than belongs here", at end
  return node
end

-- Return true if a text is the first token of a choice of several.
function K.begins(kind, text)
  for each in pairs(kind.values) do
    if each:sub(1, #text + #kind.separator) == text .. kind.separator then return true end
  end
  return false
end

-- Return what is wrong in the tokens that there are of a value, and the number of the token; nil if they fit.
function K.incomplete(kind, texts)
  if #texts == 0 then return nil end
  if kind.tokens then
    if K.begins(kind, texts[1]) then return nil end
    return "this value is not known here", 1
  end
  local at = 1
  if kind.spread and kind.item then
    local size = K.width(kind.item)
    while at <= #texts do
      local each, value, problem, token = part(texts, at, math.min(at + size - 1, #texts)), nil, nil, nil
      if #each < size then problem, token = K.incomplete(kind.item, each)
      elseif kind.item.spread then value, problem, token = K.read_texts(kind.item, each)
      else value, problem = K.read(kind.item, each[1]) end
      if problem and value == nil then return problem, at + (token or 1) - 1 end
      at = at + size
    end
  elseif kind.spread then
    for _, field in ipairs(kind.fields) do
      local problem, token = K.incomplete(field.type, part(texts, at, #texts))
      if problem then return problem, at + token - 1 end
      at = at + K.width(field.type)
    end
  else
    local value, problem = K.read(kind, texts[1])
    if value == nil then return problem, 1 end
  end
  return nil
end

-- A list that may be empty has nothing in an empty text.
local function parts(kind, text)
  local texts = {}
  if text ~= "" or kind.kind == "object" or kind.least then
    for number, token in ipairs(K.tokens(kind, text)) do texts[number] = token.text end
  end
  return K.read_texts(kind, texts)
end

K.types.list, K.types.object = parts, parts

-- A value with a fixed text before and after it.
function K.types.fixed(kind, text)
  local last = #text - #kind.after
  if last < #kind.before or text:sub(1, #kind.before) ~= kind.before or text:sub(last + 1) ~= kind.after then
    return nil, "this has another form"
  end
  return K.read(kind.item, text:sub(#kind.before + 1, last))
end

-- A text that is one token.
function K.types.single(kind, text)
  local tokens = K.tokens(kind, text)
  if #tokens ~= 1 then return nil, "one token is expected" end
  return K.read(kind.item, tokens[1].text)
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
