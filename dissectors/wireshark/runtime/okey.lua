-- Okey's lobbies: their title is a list of one token, a word and the number.

local NUMBER = {kind = "number", whole = true, plus = true, digits = 10, min = -2147483648, max = 2147483647}

function K.types.okey_number(kind, text)
  local title = K.tokens(kind, text)
  local digits = #title == 1 and title[1].text:match("^Lobby (%-?%d+)$")
  if not digits then return nil, "a lobby's title and players are expected" end
  return K.read(NUMBER, digits)
end
