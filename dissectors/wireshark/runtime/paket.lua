-- Schafkopf's Pakete: a flag, lines, and the end; a MODEL has a fixed number of lines instead.

local EMPTY, EMPTY_WINDOWS, TWICE = "\194\167", "\167", "\195\130\194\167"

-- Return the line at an offset, and the offset of the next one. A long line is no mark, and has no text.
local function line_at(framing, data, at)
  local stop = data:find("\n", at, true)
  if stop == nil then return nil end
  if stop + 1 - at > framing.longest then return "\0", stop + 1 end
  return (data:sub(at, stop - 1):gsub("\r$", "")), stop + 1
end

local function is_empty(line)
  return line == EMPTY or line == EMPTY_WINDOWS or line == TWICE
end

-- Return the end of lines that are no Paket: after its !END, or before the next flag.
local function end_of_unknown(framing, flags, data, at)
  while true do
    local line, after = line_at(framing, data, at)
    if line == nil then return nil end
    if line == "!END" then return after end
    if flags[line] then return at end
    at = after
  end
end

local function end_of_paket(framing, flags, texts, data, at)
  local lines, doubtful = 0, nil
  while true do
    local line, after = line_at(framing, data, at)
    if line == nil then return nil end
    if line == "!END" then return doubtful and lines < texts and doubtful or after end
    lines = lines + 1
    if lines <= texts then
      if flags[line] then doubtful = doubtful or at end
    elseif flags[line] then
      -- It may be a typo of !END: then a flag follows, not an amount.
      if line ~= "!ENDE" or doubtful then return at end
      doubtful = at
    elseif doubtful then
      return doubtful
    end
    at = after
  end
end

local function end_of_model(framing, flags, data, at)
  local first, number, in_phase = at, 0, true
  while true do
    local line, after = line_at(framing, data, at)
    if line == nil then return nil end
    local fits
    if number == 0 then
      fits = framing.model_flags[line] or (line:sub(1, 1) == "!" and line ~= "!END" and not flags[line])
    else
      fits = is_empty(line) or framing.cards[number % 2 + 1][line]
    end
    if not fits then
      if line == "!END" then return after end
      if number == 1 and flags[(line_at(framing, data, first))] then return first end
      if flags[line] then return at end
      if line:find("!", 1, true) then return end_of_unknown(framing, flags, data, after) end
      in_phase = false
    elseif number > 0 and not is_empty(line) then
      in_phase = true
    end
    if number >= framing.model_lines and number % 2 == 0 and in_phase then return after end
    number, at = number + 1, after
  end
end

function K.framings.paket(framing, data, at, direction, seeking)
  local flags = framing.flags[direction]
  if seeking then return end_of_unknown(framing, flags, data, at) end
  local flag, after = line_at(framing, data, at)
  if flag == nil then return nil end
  if flag == "" or flag == "!END" then return after end
  if not flags[flag] then return end_of_unknown(framing, flags, data, after) end
  if flag == "!MODEL" then return end_of_model(framing, flags, data, after) end
  return end_of_paket(framing, flags, framing.texts[flag] or 0, data, after)
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

local function ends_with_flag(line, flags)
  for flag in pairs(flags) do
    if line:sub(-#flag) == flag then return true end
  end
  return false
end

-- Return a message without a known flag. Real peers ignore unknown flags and empty lines.
local function unknown_lines(protocol, lines, direction)
  local line, flags = lines[1], protocol.framing.flags[direction]
  local message = K.unknown(line)
  local _, nuls = line:gsub("%z", "")
  local is_ignored = line:sub(1, 1) == "!" and not protocol.framing.model_flags[line]
    and not (nuls > 1 and 3 * nuls >= #K.characters(line)) and not flags[line:match("^!?[%w_]*")]
    and not resembles(line, flags) and not resembles("!" .. line, flags) and not ends_with_flag(line, flags)
  if is_ignored or (#lines == 1 and (line == "" or line == "!END")) then message.error = nil end
  return message
end

local function read_lines(frame)
  local lines = {}
  local is_utf8 = not K.not_utf8(frame)
  for _, line in ipairs(K.split(frame, "\n")) do
    line = is_utf8 and line or K.decoded(line, "windows")
    lines[#lines + 1] = line
  end
  if lines[#lines] == "" and #lines > 1 then lines[#lines] = nil end
  for number, line in ipairs(lines) do
    line = line:gsub("\r$", "")
    lines[number] = line == TWICE and EMPTY or line
  end
  return lines
end

local function after_flag(lines)
  local body = {}
  for number = 2, #lines do body[number - 1] = lines[number] end
  return body
end

local function line_count(row)
  local count = 0
  for _, field in ipairs(row.fields) do count = count + (field.type.lines or 1) end
  return count
end

-- Return the number of lines that fit a row, and the problem of the next one; missing lines are none.
local function fitting(row, body)
  local at = 0
  for _, field in ipairs(row.fields) do
    local part, total = field.type.item or field.type, field.type.lines or 1
    local step = part.lines or 1
    for _ = 1, total, step do
      if at >= #body then return at, nil end
      local value, problem
      if at + step <= #body then
        value, problem = K.read(part, table.concat(body, "\n", at + 1, at + step))
      end
      if step > 1 and value == nil then
        -- The first line of a card can be wrong even if its second one is missing.
        local is_first = false
        for text in pairs(part.values) do is_first = is_first or text:match("^[^\n]*") == body[at + 1] end
        if not is_first then return at, field.name .. ": this value is not known here" end
        if at + step <= #body then return at + 1, field.name .. ": " .. problem end
      elseif value == nil then
        return at, field.name .. ": " .. problem
      end
      at = at + step
    end
  end
  return at, nil
end

-- Return the row that was probably meant, as closest_row in paket.py does.
local function closest_row(rows, body)
  local best, best_rank
  for _, row in ipairs(rows) do
    local count, right, problem = line_count(row), fitting(row, body)
    if problem == nil then right = math.min(#body, count) end
    local rank = {right, count == 0 and 1 or 0, -math.abs(#body - count),
      problem == nil and #body >= count and 1 or 0}
    local is_better = best == nil
    for place = 1, best and #rank or 0 do
      if rank[place] ~= best_rank[place] then
        is_better = rank[place] > best_rank[place]
        break
      end
    end
    if is_better then best, best_rank = row, rank end
  end
  return best
end

-- Return the fields before the first one that does not fit, and true if all fit.
local function fields_of(row, body)
  local fields, at = {}, 1
  for _, field in ipairs(row.fields) do
    local count = field.type.lines or 1
    if at + count - 1 > #body then return fields, false end
    local value = K.read(field.type, table.concat(body, "\n", at, at + count - 1))
    if value == nil then return fields, false end
    fields[#fields + 1], at = {key = field.name, value = value}, at + count
  end
  return fields, true
end

local function rows_of(protocol, direction, line)
  local sent = line:match("^!(.*)$")
  local name = sent and protocol.names[direction][sent]
  return name and K.rows(protocol, direction, name)
end

local function invalid(row, body, problem)
  local _, wrong = fitting(row, body)
  problem = wrong or (#body < line_count(row) and "lines are missing") or problem
  return {name = row.name, fields = fields_of(row, body), error = row.name .. ": " .. problem}
end

function K.formats.paket(protocol, frame, direction)
  local lines = read_lines(frame)
  local rows = rows_of(protocol, direction, lines[1])
  if rows == nil then return unknown_lines(protocol, lines, direction) end
  local body = after_flag(lines)
  local is_model, ended = rows[1].name == "MODEL", body[#body] == "!END"
  if not is_model and ended then body[#body] = nil end
  if is_model or ended then
    for _, row in ipairs(rows) do
      if line_count(row) == #body then
        local fields, fit = fields_of(row, body)
        if fit then return {name = row.name, fields = fields} end
      end
    end
  end
  if is_model and ended then body[#body] = nil end
  local row = closest_row(rows, body)
  if is_model then return invalid(row, body, "there are more lines, or !END") end
  if not ended then return invalid(row, body, "there is no !END") end
  local _, wrong = fitting(row, body)
  if wrong == nil and #body > line_count(row)
    and not ends_with_flag(body[line_count(row) + 1], protocol.framing.flags[direction])
  then
    -- Readers ignore surplus lines.
    return {name = row.name, fields = (fields_of(row, body))}
  end
  return invalid(row, body, "there is no !END before the next message")
end

-- Return the message at the end of a connection. Real servers often close before they have sent it all.
function K.truncated.paket(protocol, frame, direction)
  local is_line = frame:sub(-1) == "\n"
  if not is_line then
    local whole = K.formats.paket(protocol, frame, direction)
    if whole.name and not whole.error then return whole end
  end
  local lines = read_lines(frame)
  local begun = lines[1]
  if not is_line then
    if #lines == 1 then
      for flag in pairs(protocol.framing.flags[direction]) do
        if flag:sub(1, #begun) == begun then
          local is_usual = ("!BEENDEN"):sub(1, #begun) == begun
          return {error = not is_usual and "the stream ends in the middle of a message" or nil}
        end
      end
      return unknown_lines(protocol, lines, direction)
    end
    lines[#lines] = nil
  end
  local rows = rows_of(protocol, direction, begun)
  if rows == nil then return unknown_lines(protocol, read_lines(frame), direction) end
  local body = after_flag(lines)
  local row = closest_row(rows, body)
  local _, wrong = fitting(row, body)
  if wrong then return invalid(row, body, wrong) end
  local count, last = line_count(row), body[#body]
  if #body > count and (last:sub(-4) == "!END" or resembles(body[count + 1], {["!END"] = true})
    or resembles(last, {["!END"] = true}))
    or (#body > 0 and #body == count and last:sub(-4) == "!END")
  then
    return invalid(row, body, "there is no !END")
  end
  local problem = "the stream ends in the middle of " .. row.name
  return {name = row.name, error = row.name ~= "BEENDEN" and problem or nil}
end

-- Several values of the same number of lines.
function K.types.paket_each(kind, text)
  local lines, found = K.split(text, "\n"), {t = "list"}
  local step = kind.item.lines or 1
  for first = 1, #lines, step do
    local value, problem = K.read(kind.item, table.concat(lines, "\n", first, first + step - 1))
    if value == nil then return nil, problem end
    found[#found + 1] = value
  end
  return found
end
