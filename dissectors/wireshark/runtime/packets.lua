-- Packets of lines: a first line with the name, a line for each token, and a last line or a fixed number of lines.

-- Return the line at an offset, and the offset of the next one. A long line is no mark, and has no text.
local function line_at(framing, direction, data, at)
  local stop = data:find("\n", at, true)
  if stop == nil then return nil end
  if stop + 1 - at > framing.longest[direction] then return "\0", stop + 1 end
  return (data:sub(at, stop - 1):gsub("\r$", "")), stop + 1
end

-- Return the end of lines that are no packet: after a last line, or before the next first one.
local function end_of_unknown(framing, direction, data, at)
  while true do
    local line, after = line_at(framing, direction, data, at)
    if line == nil then return nil end
    if framing.ends[direction][line] then return after end
    if framing.forms[direction][line] then return at end
    at = after
  end
end

local function end_of_ended(framing, direction, form, data, at)
  local lines, doubtful = 0, nil
  local firsts = framing.forms[direction]
  while true do
    local line, after = line_at(framing, direction, data, at)
    if line == nil then return nil end
    if line == form["end"] then return doubtful and lines < form.least and doubtful or after end
    lines = lines + 1
    if lines <= form.texts then
      if firsts[line] then doubtful = doubtful or at end
    elseif firsts[line] then
      -- It may be a typo of the last line: then a first line follows.
      if not form.misspelt[line] or doubtful then return at end
      doubtful = at
    elseif doubtful then
      return doubtful
    end
    at = after
  end
end

local function fits(kind, line)
  if kind.words then return kind.words[line] ~= nil end
  return kind.type == nil or K.read(kind.type, line) ~= nil
end

local function is_distinct(framing, form, place, line)
  for _, other in ipairs(form.lines) do
    if other ~= place and fits(framing.kinds[other], line) then return false end
  end
  return true
end

local function end_of_counted(framing, direction, form, data, at)
  local first, number, in_phase, count = at, 0, true, #form.lines
  local firsts, mark = framing.forms[direction], framing.mark
  if count == 0 then return at end
  while true do
    local line, after = line_at(framing, direction, data, at)
    if line == nil then return nil end
    local place = form.lines[number < count and number + 1 or count - form.period + (number - count) % form.period + 1]
    local kind = framing.kinds[place]
    local is_right = fits(kind, line)
    local is_typo = kind.marked and line:sub(1, #mark) == mark and not framing.ends[direction][line] and not firsts[line]
    if not is_right and not is_typo then
      if framing.ends[direction][line] then return after end
      if number == 1 and firsts[(line_at(framing, direction, data, first))] then return first end
      if firsts[line] then return at end
      if mark ~= "" and line:find(mark, 1, true) then return end_of_unknown(framing, direction, data, after) end
      in_phase = false
    elseif not in_phase and is_right and is_distinct(framing, form, place, line) then
      in_phase = true
    end
    number = number + 1
    local excess = number - count
    if excess >= 0 and excess % form.period == 0 and in_phase then return after end
    at = after
  end
end

function K.framings.packets(framing, data, at, direction, seeking)
  if seeking then return end_of_unknown(framing, direction, data, at) end
  local first, after = line_at(framing, direction, data, at)
  if first == nil then return nil end
  if first == "" or framing.ends[direction][first] then return after end
  local form = framing.forms[direction][first]
  if form == nil then return framing["end"] == "" and after or end_of_unknown(framing, direction, data, after) end
  if form.lines then return end_of_counted(framing, direction, form, data, after) end
  return end_of_ended(framing, direction, form, data, after)
end

-- Return the number of equal characters in blocks, as Python's difflib counts them.
local function equal_characters(one, other)
  local best, first, second = 0, 1, 1
  for i = 1, #one do
    for j = 1, #other do
      local size = 0
      while i + size <= #one and j + size <= #other and one:byte(i + size) == other:byte(j + size) do
        size = size + 1
      end
      if size > best then best, first, second = size, i, j end
    end
  end
  if best == 0 then return 0 end
  return best + equal_characters(one:sub(1, first - 1), other:sub(1, second - 1))
    + equal_characters(one:sub(first + best), other:sub(second + best))
end

local function resembles(line, words)
  local meant = K.characters(line, 40):gsub("^[%s\28-\31]+", ""):gsub("[%s\28-\31]+$", ""):lower()
  for word in pairs(words) do
    if 2 * equal_characters(word:lower(), meant) / (#word + #meant) >= 0.7 then return true end
  end
  return false
end

local function ends_with_first(line, firsts)
  for first in pairs(firsts) do
    if line:sub(-#first) == first then return true end
  end
  return false
end

-- Return a message without a known first line. Empty lines are ignored; `ignored` is the mark of unknown first lines
-- that are, too, if they resemble no known one.
local function unknown_lines(protocol, lines, direction)
  local line, firsts, framing = lines[1].text, protocol.framing.forms[direction], protocol.framing
  local message, mark = K.unknown(line), protocol.format.ignored
  local _, nuls = line:gsub("%z", "")
  local is_ignored = mark and line:sub(1, #mark) == mark and not framing.marked[line]
    and not (nuls > 1 and 3 * nuls >= #K.characters(line)) and not firsts[line:match("^!?[%w_]*")]
    and not resembles(line, firsts) and not resembles(mark .. line, firsts) and not ends_with_first(line, firsts)
  if is_ignored or (#lines == 1 and (line == "" or framing.ends[direction][line])) then message.error = nil end
  return message
end

-- Return the lines of a frame with their places, and true if they are not in the encoding.
local function read_lines(protocol, frame)
  local lines, at, wrong, encoding = {}, 1, false, protocol.format.encoding
  local is_utf8 = not K.not_utf8(frame)
  for _, line in ipairs(K.split(frame, "\n")) do
    local text, is_wrong = line, false
    if encoding ~= "windows" or not is_utf8 then text, is_wrong = K.decoded(line, encoding) end
    if is_wrong then text, wrong = K.replaced(text), true end
    text = text:gsub("\r$", "")
    lines[#lines + 1] = {
      text = protocol.format.spelled and protocol.format.spelled[text] or text,
      at = at, stop = at + #line:gsub("\r$", ""),
    }
    at = at + #line + 1
  end
  if #lines > 1 and lines[#lines].text == "" then lines[#lines] = nil end
  return lines, wrong
end

-- Read the lines of a row: its fields before the first error, the number of lines that fit, the error, and the number
-- of lines that it should have.
local function read_row(row, body)
  local texts = {}
  for number, line in ipairs(body) do texts[number] = line.text end
  local fields, right = {}, 0
  local spans, used = K.spans(row.fields, texts)
  for _, span in ipairs(spans) do
    local kind, part = span.field.type, {}
    for number = span.first, math.min(span.last, #body) do part[#part + 1] = texts[number] end
    if #part < span.last - span.first + 1 then
      local problem, token = K.incomplete(kind, part)
      if problem then return fields, span.first - 1 + token - 1, span.field.name .. ": " .. problem, used end
      return fields, #body, nil, used
    end
    local value, problem, token
    if kind.kind == "rest" then value = K.scalar("s", table.concat(part, "\n"))
    elseif kind.spread then value, problem, token = K.read_texts(kind, part)
    else value, problem = K.read(kind, part[1]) end
    if value == nil and not (span.field.optional and part[1] == "") then
      return fields, span.first - 1 + (token or 1) - 1, span.field.name .. ": " .. problem, used
    end
    if value then
      if kind.kind ~= "rest" and span.last >= span.first then
        value.at, value.stop = body[span.first].at, body[span.last].stop
        if kind.spread then K.place(value, body, span.first) end
      end
      fields[#fields + 1] = {key = span.field.name, value = value}
    end
    right = span.last
  end
  return fields, math.min(#body, right), nil, used
end

-- Return what was read of the row that was probably meant: with the most lines that fit.
local function closest(rows, body)
  local best, best_rank
  for _, row in ipairs(rows) do
    local fields, right, problem, count = read_row(row, body)
    local rank = {right, count == 0 and 1 or 0, -math.abs(#body - count),
      problem == nil and #body >= count and 1 or 0}
    local is_better = best == nil
    for number = 1, best and #rank or 0 do
      if rank[number] ~= best_rank[number] then
        is_better = rank[number] > best_rank[number]
        break
      end
    end
    if is_better then best, best_rank = {row = row, fields = fields, problem = problem, count = count}, rank end
  end
  return best
end

local function rows_of(protocol, direction, first)
  local name = protocol.names[direction][first]
  return name and K.rows(protocol, direction, name)
end

local function after_first(lines)
  local body = {}
  for number = 2, #lines do body[number - 1] = lines[number] end
  return body
end

local function invalid(read, body, problem)
  if read.problem == nil and #body < read.count then problem = "lines are missing" end
  return {name = read.row.name, fields = read.fields, error = read.row.name .. ": " .. (read.problem or problem)}
end

local function end_of(protocol, direction, first)
  local form = protocol.framing.forms[direction][first]
  return form and not form.lines and form["end"] or nil
end

function K.formats.packets(protocol, frame, direction)
  local lines, wrong = read_lines(protocol, frame)
  local rows = rows_of(protocol, direction, lines[1].text)
  if rows == nil then return unknown_lines(protocol, lines, direction) end
  local body, last = after_first(lines), end_of(protocol, direction, lines[1].text)
  local ends = protocol.framing.ends
  local has_end = #body > 0 and (ends.c2s[body[#body].text] or ends.s2c[body[#body].text])
  local ended = last == nil or (has_end and body[#body].text == last)
  if last and has_end then body[#body] = nil end
  if ended then
    for _, row in ipairs(rows) do
      local fields, right, problem, count = read_row(row, body)
      if problem == nil and count == #body and right == #body then
        return {name = row.name, fields = fields, error = wrong and "the bytes are not in the encoding" or nil}
      end
    end
  end
  if last == nil and has_end then body[#body] = nil end
  local read = closest(rows, body)
  if last == nil then return invalid(read, body, "there are more lines, or a last one") end
  if not ended then return invalid(read, body, "there is no " .. last) end
  local next_line, firsts = body[read.count + 1], protocol.framing.forms[direction]
  if protocol.format.ignores_surplus and read.problem == nil and next_line
    and not (protocol.framing.mark ~= "" and ends_with_first(next_line.text, firsts))
  then
    -- Readers ignore surplus lines.
    return {name = read.row.name, fields = read.fields, error = wrong and "the bytes are not in the encoding" or nil}
  end
  return invalid(read, body, "there are more lines than fields, or no " .. last)
end

-- Return the message at the end of a connection. Real servers often close before they have sent it all.
function K.truncated.packets(protocol, frame, direction)
  local is_line = frame:sub(-1) == "\n"
  if not is_line then
    local whole = K.formats.packets(protocol, frame, direction)
    if whole.name and not whole.error then return whole end
  end
  local lines = read_lines(protocol, frame)
  local begun, cut = lines[1].text, protocol.format.may_be_cut
  if not is_line then
    if #lines == 1 then
      for first in pairs(protocol.framing.forms[direction]) do
        if first:sub(1, #begun) == begun then
          local is_usual = false
          for each in pairs(cut) do is_usual = is_usual or each:sub(1, #begun) == begun end
          return {error = not is_usual and "the stream ends in the middle of a message" or nil}
        end
      end
      return unknown_lines(protocol, lines, direction)
    end
    lines[#lines] = nil
  end
  local rows = rows_of(protocol, direction, begun)
  if rows == nil then return unknown_lines(protocol, read_lines(protocol, frame), direction) end
  local body, ended = after_first(lines), end_of(protocol, direction, begun)
  local read = closest(rows, body)
  if read.problem then return invalid(read, body, read.problem) end
  local count, last = read.count, body[#body] and body[#body].text
  if ended and last and #body >= count and (last:sub(-#ended) == ended
    or (#body > count and (resembles(body[count + 1].text, {[ended] = true}) or resembles(last, {[ended] = true}))))
  then
    return invalid(read, body, "there is no " .. ended)
  end
  local problem = "the stream ends in the middle of " .. read.row.name
  return {name = read.row.name, error = not cut[begun] and problem or nil}
end
