-- The peer that Kiebitz's import is measured against: CGML as a tshark dissector with flat fields. There is no
-- XML parser in tshark's Lua: patterns find the tags, attributes and texts, whatever element they stand in.
local cgml = Proto("cgml", "CGML")
local names = {
  "msg", "status", "type", "id", "playerid", "to", "from", "number", "game", "numplayers", "url", "name", "race",
  "card", "licite", "trumf", "flek", "money", "load", "disconnect", "cancelgame", "message",
}
local f = {}
for _, name in ipairs(names) do
  f[name] = ProtoField.string("cgml." .. name, name)
  table.insert(cgml.fields, f[name])
end

local function add(subtree, buffer, name, at, value)
  local field = f[name]
  if field and #value > 0 then subtree:add(field, buffer(at - 1, #value), value) end
end

function cgml.dissector(buffer, pinfo, tree)
  local text = buffer():raw()
  local start = 1
  while start <= #text do
    local _, after = string.find(text, "\r\n\r\n", start, true)
    if not after then
      pinfo.desegment_offset = start - 1
      pinfo.desegment_len = DESEGMENT_ONE_MORE_SEGMENT
      return
    end
    local depth, subtree = 0, nil
    for at, slash, name, attributes, empty, behind in
      string.gmatch(string.sub(text, start, after), "()<(/?)(%w+)([^<>]-)(/?)>()") do
      if slash == "/" then
        depth = depth - 1
      else
        local place = start + at - 1
        if depth == 0 then
          pinfo.cols.protocol = "CGML"
          pinfo.cols.info = name
          subtree = tree:add(cgml, buffer(place - 1))
          subtree:add(f.msg, buffer(place, #name), name)
        end
        for key, value_at, value in string.gmatch(attributes, '(%w+)="()([^"]*)"') do
          add(subtree, buffer, key, place + 1 + #name + value_at - 1, value)
        end
        add(subtree, buffer, name, start + behind - 1, string.match(text, "^[^<\r]*", start + behind - 1))
        if empty == "" then depth = depth + 1 end
      end
    end
    start = after + 1
  end
end

for port = 7001, 7003 do DissectorTable.get("tcp.port"):add(port, cgml) end
