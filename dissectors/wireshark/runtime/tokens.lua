-- Tokens of a text: they are separated and quoted as a format or a type says.

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

-- Return the tokens of a text: text, start and end. A form is a format, or a type with parts.
function K.tokens(form, text)
  if form.pads then return padded(form, text) end
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
