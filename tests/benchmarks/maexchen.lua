-- The peer that Kiebitz's import is measured against: Mäxchen as a tshark dissector with flat fields.
local maexchen = Proto("maexchen", "Mäxchen")
local f = {}
for _, name in ipairs({"msg", "name", "dice", "token", "round", "players", "reason", "scores"}) do
  f[name] = ProtoField.string("maexchen." .. name, name)
  table.insert(maexchen.fields, f[name])
end

local shapes = {
  ["REGISTER"] = {"name"}, ["REGISTER_SPECTATOR"] = {"name"}, ["REJECTED"] = {"reason"}, ["JOIN"] = {"token"},
  ["ROLL"] = {"token"}, ["SEE"] = {"token"}, ["ANNOUNCE"] = {"dice", "token"}, ["YOUR TURN"] = {"token"},
  ["PLAYER ROLLS"] = {"name"}, ["ROLLED"] = {"dice", "token"}, ["ANNOUNCED"] = {"name", "dice"},
  ["PLAYER WANTS TO SEE"] = {"name"}, ["ACTUAL DICE"] = {"dice"}, ["PLAYER LOST"] = {"players", "reason"},
  ["ROUND CANCELED"] = {"reason"}, ["SCORE"] = {"scores"},
}
local numbered = {["ROUND STARTING"] = {"round", "token"}, ["ROUND STARTED"] = {"round", "players"}}
local bare = {["ROUND STARTING"] = {"token"}, ["ROUND STARTED"] = {"players"}}

function maexchen.dissector(buffer, pinfo, tree)
  local text = buffer():raw()
  local parts, at = {}, 0
  for part in string.gmatch(text .. ";", "([^;]*);") do
    parts[#parts + 1] = {part, at}
    at = at + #part + 1
  end
  if #parts == 0 then return 0 end
  local name = parts[1][1]
  pinfo.cols.protocol = "MAEXCHEN"
  pinfo.cols.info = name
  local subtree = tree:add(maexchen, buffer())
  subtree:add(f.msg, buffer(0, #name), name)
  local shape = shapes[name] or (#parts > 2 and numbered[name] or bare[name]) or {}
  for number, field in ipairs(shape) do
    local part = parts[number + 1]
    if part and #part[1] > 0 then subtree:add(f[field], buffer(part[2], #part[1]), part[1]) end
  end
  return buffer:len()
end

DissectorTable.get("udp.port"):add(9000, maexchen)
