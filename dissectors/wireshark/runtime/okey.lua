-- Okey's lines: arguments with blanks between them, quoted by one recursive rule.

-- Return the tokens of a text; an empty one without a padding is lost.
local function cut(text)
  local found, parts, quoted, start, at = {}, {}, false, 1, 1
  local function add(part)
    if part ~= "" then parts[#parts + 1] = part end
  end
  local function finish(stop)
    if #parts == 0 then return end
    local token = table.concat(parts)
    if quoted then token = token:gsub("[ %%]$", "") end
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

K.tokenizers = {okey = cut}

function K.types.okey_name(kind, text)
  return text == "" and K.scalar("null") or K.scalar("s", text)
end

function K.types.okey_list(kind, text)
  local tokens = cut(text)
  if #tokens < (kind.least or 0) or #tokens > (kind.most or #tokens) then
    return nil, "this list has another length"
  end
  local found = {t = "list"}
  for number, token in ipairs(tokens) do
    local value, problem = K.read(kind.item, token.text)
    if value == nil then return nil, problem end
    found[number] = value
  end
  return found
end

local NUMBER = {kind = "number", whole = true, plus = true, digits = 10, min = -2147483648, max = 2147483647}
local NAMES = {kind = "okey_list", item = {kind = "okey_name"}}

local function lobby(number, players)
  local node = K.read(NUMBER, number)
  if node == nil then return nil, "this is not a lobby" end
  return {t = "object", {key = "lobby", value = node}, {key = "players", value = players}}
end

function K.types.okey_titled(kind, text)
  local tokens, found = cut(text), {t = "list"}
  for number = 1, #tokens, 2 do
    local title = cut(tokens[number].text)
    local digits = #title == 1 and title[1].text:match("^Lobby (%-?%d+)$")
    if not digits or tokens[number + 1] == nil then return nil, "a lobby's title and players are expected" end
    found[#found + 1] = lobby(digits, K.read(NAMES, tokens[number + 1].text))
  end
  return found
end

function K.types.okey_lobby(kind, text)
  local tokens, players = cut(text), {t = "list"}
  for number = 2, #tokens do players[number - 1] = K.types.okey_name(kind, tokens[number].text) end
  return lobby(tokens[1] and tokens[1].text or "", players)
end

function K.types.okey_game(kind, text)
  local number, colon, rest = text:match("^([^:]*)(:?)(.*)$")
  local node = K.read(NUMBER, number)
  if node == nil or (colon == ":") ~= (kind.behind ~= nil) then return nil, "this is not a game" end
  local found = {t = "object", {key = "lobby", value = node}}
  if kind.behind == "players" then
    local players = K.read(NUMBER, rest)
    if players == nil then return nil, "this is not a number of players" end
    found[2] = {key = "players", value = players}
  elseif kind.behind then found[2] = {key = "winner", value = K.types.okey_name(kind, rest)} end
  return found
end

function K.types.okey_score(kind, text)
  local tokens = cut(text)
  local digits = #tokens == 3 and tokens[3].text:match("^%d+$")
  if not digits or #digits > 9 then return nil, "a name, a date and a number are expected" end
  return {t = "object", {key = "name", value = K.scalar("s", tokens[1].text)},
    {key = "date", value = K.scalar("s", tokens[2].text)},
    {key = "turns", value = K.scalar("i", (digits:gsub("^0+(%d)", "%1")))}}
end
