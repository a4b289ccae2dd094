-- The peer that Kiebitz's import is measured against: Schafkopf as a tshark dissector with flat fields.
local schafkopf = Proto("schafkopf", "Schafkopf")
local f = {}
local names = {
  "msg", "flag", "name", "modus", "ja", "id", "spieler", "mitspieler", "dran", "konto", "stock", "farbe", "wert",
  "spielerhand", "tisch", "letzter_stich",
}
for _, name in ipairs(names) do
  f[name] = ProtoField.string("schafkopf." .. name, name)
  table.insert(schafkopf.fields, f[name])
end

local shapes = {
  ["!NAME"] = {"name"}, ["!MITSPIELER"] = {"name", "name", "name", "name"}, ["!MODUS"] = {"modus"},
  ["!BESTESSPIEL"] = {"modus"}, ["!SPIELSTDU"] = {"modus"}, ["!KONTRA"] = {"ja", "ja", "ja", "ja"},
  ["!GEKLOPFT"] = {"ja", "ja", "ja", "ja"}, ["!ERSTE3"] = {"ja"}, ["!ID"] = {"id"}, ["!DRAN"] = {"dran"},
  ["!SPIELT"] = {"spieler", "mitspieler"}, ["!SIEGER"] = {"spieler", "mitspieler"}, ["!HOCHZEIT"] = {"ja"},
  ["!KARTE"] = {"farbe", "wert"}, ["!KONTO"] = {"konto", "stock"}, ["!ENDE"] = {"konto", "stock"}, ["!STOCK"] = {"stock"},
}
local cards = {{"spielerhand", 6}, {"tisch", 4}, {"letzter_stich", 4}}

-- The lines of the message that begins at `start`, each with its place, and where the next one begins; nil
-- if the message is not whole yet.
local function read(text, start)
  local lines, at = {}, start
  while true do
    local feed = string.find(text, "\n", at, true)
    if not feed then return nil end
    local line = string.gsub(string.sub(text, at, feed - 1), "\r$", "")
    lines[#lines + 1] = {line, at - 1}
    at = feed + 1
    if lines[1][1] == "!MODEL" then
      if #lines == 30 then return lines, at end
    elseif line == "!END" then
      return lines, at
    end
  end
end

local function add_model(subtree, buffer, lines)
  subtree:add(f.flag, buffer(lines[2][2], #lines[2][1]), lines[2][1])
  local number = 3
  for _, part in ipairs(cards) do
    for _ = 1, part[2] do
      local farbe, wert = lines[number], lines[number + 1]
      local card = farbe[1] .. " " .. wert[1]
      subtree:add(f[part[1]], buffer(farbe[2], wert[2] + #wert[1] - farbe[2]), card)
      number = number + 2
    end
  end
end

function schafkopf.dissector(buffer, pinfo, tree)
  local text = buffer():raw()
  local start = 1
  while start <= #text do
    local lines, after = read(text, start)
    if not lines then
      pinfo.desegment_offset = start - 1
      pinfo.desegment_len = DESEGMENT_ONE_MORE_SEGMENT
      return
    end
    local name = lines[1][1]
    pinfo.cols.protocol = "SCHAFKOPF"
    pinfo.cols.info = name
    local subtree = tree:add(schafkopf, buffer(start - 1, after - start))
    subtree:add(f.msg, buffer(lines[1][2], #name), name)
    if name == "!MODEL" then
      add_model(subtree, buffer, lines)
    else
      for number, field in ipairs(shapes[name] or {}) do
        local line = lines[number + 1]
        if line and line[1] ~= "!END" then subtree:add(f[field], buffer(line[2], #line[1]), line[1]) end
      end
    end
    start = after
  end
end

DissectorTable.get("tcp.port"):add(35555, schafkopf)
