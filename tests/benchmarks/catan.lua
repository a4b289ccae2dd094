-- The peer that Kiebitz's import is measured against: Catan as a tshark dissector with flat fields. There is no
-- JSON in tshark's Lua: patterns find the names and values, whatever object they stand in.
local catan = Proto("catan", "Catan")
local msg = ProtoField.string("catan.msg", "Message")
catan.fields = {msg}
local names = {
  "Version", "Protokoll", "id", "Meldung", "Serverantwort", "Absender", "Nachricht", "Name", "Farbe", "Status",
  "Siegpunkte", "Rittermacht", "Rohstoffe", "Entwicklungskarten", "Spieler", "Sieger", "x", "y", "Typ", "Zahl",
  "Eigentümer", "Wurf", "Ziel", "Entwicklungskarte", "Mitspieler", "Handel id", "Annehmen", "Rohstoff", "Unbekannt",
  "Holz", "Lehm", "Wolle", "Getreide", "Erz", "Ritter", "Straßenbau", "Monopol", "Erfindung", "Siegpunkt",
  "Längste Handelsstraße", "Größte Rittermacht",
}
local ascii = {["ä"] = "ae", ["ö"] = "oe", ["ü"] = "ue", ["ß"] = "ss", [" "] = "_"}
local f = {}
for _, name in ipairs(names) do
  local abbreviation = string.gsub(string.gsub(name, "\195.", ascii), " ", ascii)
  f[name] = ProtoField.string("catan." .. string.lower(abbreviation), name)
  table.insert(catan.fields, f[name])
end

local function add_attributes(subtree, buffer, line, offset)
  for name, at in string.gmatch(line, '"([^"]*)"%s*:%s*()') do
    local field = f[name]
    if field then
      -- A string, a number or a word, or a list of numbers; an object's attributes come by themselves.
      local value = string.match(line, '^"([^"]*)"', at)
      if value then
        at = at + 1
      else
        value = string.match(line, "^[%w.-]+", at) or string.match(line, "^%[[%d, ]+%]", at)
      end
      if value then subtree:add(field, buffer(offset + at - 1, #value), value) end
    end
  end
end

function catan.dissector(buffer, pinfo, tree)
  local text = buffer():raw()
  local start = 1
  while start <= #text do
    local feed = string.find(text, "\n", start, true)
    if not feed then
      pinfo.desegment_offset = start - 1
      pinfo.desegment_len = DESEGMENT_ONE_MORE_SEGMENT
      return
    end
    local line = string.sub(text, start, feed)
    local at, name = string.match(line, '^%s*{%s*"()([^"]*)"')
    if name then
      pinfo.cols.protocol = "CATAN"
      pinfo.cols.info = name
      local subtree = tree:add(catan, buffer(start - 1, #line))
      subtree:add(msg, buffer(start + at - 2, #name), name)
      add_attributes(subtree, buffer, line, start - 1)
    end
    start = feed + 1
  end
end

DissectorTable.get("tcp.port"):add(6789, catan)
