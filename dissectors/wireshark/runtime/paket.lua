-- Schafkopf's Pakete: a flag, lines, and the end; a MODEL has a fixed number of lines instead.

local EMPTY, TWICE = "\194\167", "\195\130\194\167"

local function line_at(data, at)
  local stop = data:find("\n", at, true)
  if stop == nil then return nil end
  return data:sub(at, stop - 1):gsub("\r$", ""), stop + 1
end

function K.framings.paket(framing, data, at, direction)
  local flags = framing.flags[direction]
  local flag, position = line_at(data, at)
  if flag == nil then return nil end
  if flag == "" or flag == "!END" then return position end
  if flag == "!MODEL" then
    local stop, fits = position, true
    for number = 0, framing.model_lines do
      local start = stop
      local line
      line, stop = line_at(data, stop)
      if line == nil then return nil end
      local known = number == 0 and framing.model_flags[line]
        or (number > 0 and framing.cards[line == "\167" and EMPTY or line])
      if not known then
        if line == "!END" then return stop end
        if flags[line] and number > 0 then return start end
        fits = false
        break
      end
    end
    if fits then return stop end
    flag = nil
  end
  local lines, texts = 0, flags[flag] and framing.texts[flag] or 0
  while true do
    local line, after = line_at(data, position)
    if line == nil then return nil end
    if line == "!END" then return after end
    lines = lines + 1
    if flags[line] and lines > texts and not (line == "!ENDE" and flag) then return position end
    position = after
  end
end

function K.formats.paket(protocol, frame, direction)
  local text = K.decoded(frame, "windows")
  local lines = {}
  for _, line in ipairs(K.split(text, "\n")) do
    line = line:gsub("\r$", "")
    lines[#lines + 1] = line == TWICE and EMPTY or line
  end
  if lines[#lines] == "" and #lines > 1 then lines[#lines] = nil end
  local name = lines[1]:match("^!(.*)$")
  local sent = name and protocol.names[direction][name]
  if sent == nil then return K.unknown(lines[1]) end
  table.remove(lines, 1)
  local ended = lines[#lines] == "!END"
  if ended then lines[#lines] = nil end
  if not ended and name ~= "MODEL" then
    return {name = name, fields = {}, error = name .. ": there is no !END"}
  end
  if ended and name == "MODEL" then
    return {name = name, fields = {}, error = name .. ": it ends with !END"}
  end
  local best, best_problem
  for _, row in ipairs(K.rows(protocol, direction, name)) do
    local fields, at, problem = {}, 1, nil
    for _, field in ipairs(row.fields) do
      local count = field.type.lines or 1
      if at + count - 1 > #lines then
        problem = field.name .. " is missing"
        break
      end
      local value, wrong = K.read(field.type, table.concat(lines, "\n", at, at + count - 1))
      if value == nil then
        problem = field.name .. ": " .. wrong
        break
      end
      fields[#fields + 1], at = {key = field.name, value = value}, at + count
    end
    if problem == nil and at <= #lines then
      problem = "there are more lines"
    end
    if problem == nil then return {name = name, fields = fields} end
    if best == nil or #fields > #best then best, best_problem = fields, problem end
  end
  return {name = name, fields = best, error = name .. ": " .. best_problem}
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
