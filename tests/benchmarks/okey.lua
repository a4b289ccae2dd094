-- The peer that Kiebitz's import is measured against: Okey as a tshark dissector with flat fields.
local okey = Proto("okey", "Okey")
local f = {}
local names = {
  "msg", "nickname", "actualname", "playerlist", "lobbies", "gamestatus", "games", "n", "joinsuccessful", "startdeck",
  "playeridx", "exchangestacks", "currentplayeridx", "drawstack", "tile", "deck", "valid", "won", "messagetype",
  "message", "whisperrecipient", "sender", "highscores", "debugmessage",
}
for _, name in ipairs(names) do
  f[name] = ProtoField.string("okey." .. name, name)
  table.insert(okey.fields, f[name])
end

local lists = {playerlist = true, startdeck = true, exchangestacks = true, deck = true, games = true, lobbies = true}
local shapes = {
  LOGI = {"nickname"}, ["+LOGI"] = {"actualname"}, NAME = {"nickname"}, ["+NAME"] = {"actualname"},
  ["+LPLA"] = {"playerlist"}, ["+LLPL"] = {"lobbies"}, LGAM = {"gamestatus"}, ["+LGAM"] = {"gamestatus", "games"},
  JLOB = {"n"}, ["+JLOB"] = {"joinsuccessful", "debugmessage"}, ["+LLOB"] = {"valid"}, JOND = {"nickname"},
  LEFT = {"nickname"}, NAMS = {"playerlist"}, ["+RNAM"] = {"playerlist"}, ["+HIGH"] = {"highscores"},
  STRT = {"startdeck", "playeridx"}, STAT = {"exchangestacks", "currentplayeridx"},
  ["+RSTA"] = {"exchangestacks", "currentplayeridx"}, DRAW = {"drawstack"}, ["+DRAW"] = {"tile", "debugmessage"},
  PUTT = {"tile", "deck"}, ["+PUTT"] = {"valid", "won", "debugmessage"}, PWIN = {"nickname"},
  CATC = {"messagetype", "message", "whisperrecipient"}, ["+CATC"] = {"messagetype", "message", "whisperrecipient", "valid"},
  CATS = {"messagetype", "message", "sender"}, ["+WINC"] = {"deck"},
}

-- The tokens of a text, without their quotation marks and padding.
local function cut(text)
  local tokens, at = {}, 1
  while at <= #text do
    local char = string.sub(text, at, at)
    if char == " " then
      at = at + 1
    elseif char == '"' then
      local close = at + 1
      while true do
        close = string.find(text, '"', close, true)
        if not close then return tokens end
        if string.sub(text, close - 1, close - 1) ~= "\\" then break end
        close = close + 1
      end
      local inner = string.gsub(string.sub(text, at + 1, close - 2), '\\"', '"')
      tokens[#tokens + 1] = inner
      at = close + 1
    else
      local blank = string.find(text, " ", at, true) or #text + 1
      tokens[#tokens + 1] = string.sub(text, at, blank - 1)
      at = blank
    end
  end
  return tokens
end

function okey.dissector(buffer, pinfo, tree)
  local text = buffer():raw()
  local start = 1
  while start <= #text do
    local feed = string.find(text, "\r\n", start, true)
    if not feed then
      pinfo.desegment_offset = start - 1
      pinfo.desegment_len = DESEGMENT_ONE_MORE_SEGMENT
      return
    end
    local place = buffer(start - 1, feed - start)
    local tokens = cut(string.sub(text, start, feed - 1))
    pinfo.cols.protocol = "OKEY"
    pinfo.cols.info = tokens[1]
    local subtree = tree:add(okey, place)
    subtree:add(f.msg, place, tokens[1])
    for number, name in ipairs(shapes[tokens[1]] or {}) do
      local token = tokens[number + 1]
      if token and lists[name] then
        for _, part in ipairs(cut(token)) do subtree:add(f[name], place, part) end
      elseif token then
        subtree:add(f[name], place, token)
      end
    end
    start = feed + 2
  end
end

DissectorTable.get("tcp.port"):add(8090, okey)
