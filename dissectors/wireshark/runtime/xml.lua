-- XML: its parser, its framing, and messages that are elements. Document types and entities are refused.

local DEPTH_LIMIT = 64
local ENTITIES = {lt = "<", gt = ">", amp = "&", quot = '"', apos = "'"}
local NAME = "[%a_:\128-\255][%w_:.\128-\255-]*"

local function unescaped(text)
  local wrong
  local found = text:gsub("&([^;&]*);?", function(name)
    if ENTITIES[name] then return ENTITIES[name] end
    local code = tonumber(name:match("^#(%d+)$")) or tonumber(name:match("^#x(%x+)$") or "", 16)
    if code and code > 0 and code < 0x110000 and not (code >= 0xD800 and code < 0xE000) then
      return K.utf8_char(code)
    end
    wrong = true
  end)
  if wrong or text:find("&[^;]*$") then return nil end
  return found
end

-- Return the end of the markup that begins at `at`, and its kind; nil if it is incomplete.
function K.markup(text, at)
  for begin, finish in pairs({["<!--"] = "-->", ["<![CDATA["] = "]]>", ["<?"] = "?>"}) do
    if text:sub(at, at + #begin - 1) == begin then
      local _, stop = text:find(finish, at + #begin, true)
      return stop and stop + 1, begin
    end
  end
  local position = at + 1
  while true do
    local mark = text:find("[\"'<>]", position)
    if mark == nil then return nil end
    local found = text:sub(mark, mark)
    if found == ">" then
      if text:sub(at + 1, at + 1) == "/" then return mark + 1, "end" end
      if text:sub(at + 1, at + 1) == "!" then return mark + 1, "<!" end
      return mark + 1, text:sub(mark - 1, mark - 1) == "/" and "empty" or "start"
    elseif found == "<" then return mark, "text" end
    local closing = text:find(found, mark + 1, true)
    if closing == nil then return nil end
    position = closing + 1
  end
end

local function attributes_of(text, at, stop)
  local found, position, seen = {}, at, {}
  while position < stop do
    local blank, after = text:match("^([ \t\r\n]*)()", position)
    if after >= stop then return found end
    local name, mark, start = text:match("^(" .. NAME .. ")[ \t\r\n]*=[ \t\r\n]*([\"'])()", after)
    if name == nil or blank == "" then return nil end
    local closing = text:find(mark, start, true)
    if closing == nil or closing >= stop then return nil end
    local value = unescaped((text:sub(start, closing - 1):gsub("\r\n", " "):gsub("[\t\r\n]", " ")))
    if value == nil or text:sub(start, closing - 1):find("<", 1, true) then return nil end
    if seen[name] then return nil end
    seen[name] = true
    found[#found + 1] = {name = name, value = value, at = start, stop = closing}
    position = closing + 1
  end
  return found
end

-- Return the element in a range of bytes, or nil and what is wrong.
function K.parse_xml(text, at, stop)
  local root, open = nil, {}
  text = text:sub(1, stop - 1)
  local function add_text(found)
    local top = open[#open]
    if top then
      top.texts[#top.texts + 1] = found
    elseif found:find("[^ \t\r\n]") then return false end
    return true
  end
  while at < stop do
    local mark = text:find("<", at, true) or stop
    if mark > at then
      local plain = unescaped((text:sub(at, mark - 1):gsub("\r\n?", "\n")))
      if plain == nil then return nil, "an entity is not valid" end
      if not add_text(plain) then return nil, "there is text outside the element" end
      at = mark
    end
    if at >= stop then break end
    local after, kind = K.markup(text, at)
    if after == nil then return nil, "the message ends in markup" end
    if kind == "<!" then return nil, "document types are refused" end
    if kind == "text" then return nil, 'a "<" begins no tag' end
    if kind == "<![CDATA[" then
      if #open == 0 then return nil, "there is text outside the element" end
      add_text(text:sub(at + 9, after - 4))
    elseif kind == "start" or kind == "empty" then
      if #open == 0 and root then return nil, "there is a second element" end
      if #open >= DEPTH_LIMIT then return nil, "the nesting is too deep" end
      local name, from = text:match("^<(" .. NAME .. ")()", at)
      local attributes = name and attributes_of(text, from, after - (kind == "empty" and 2 or 1))
      if attributes == nil then return nil, "this tag is not valid" end
      local element = {tag = name, attributes = attributes, children = {}, texts = {}, text = "", at = at, stop = after}
      if open[1] then table.insert(open[#open].children, element) else root = element end
      if kind == "start" then
        element.inner = after
        open[#open + 1] = element
      end
    elseif kind == "end" then
      local name = text:match("^</(" .. NAME .. ")[ \t\r\n]*>", at)
      local top = table.remove(open)
      if top == nil or name ~= top.tag then return nil, "an end tag does not belong here" end
      top.inner_stop, top.stop, top.text = at, after, table.concat(top.texts)
    end
    at = after
  end
  if root == nil or #open > 0 then return nil, "the element has no end" end
  return root
end

local function known_root(framing, name)
  return framing.roots and name and framing.roots[name:lower()] or nil
end

-- Return the end of an element, with the blank line after it if the framing has one.
function K.framings.xml(framing, data, at)
  local depth, position, begun, root = 0, at, false, nil
  local function ended(stop)
    local closing = framing.envelope and not framing.stays_open
      and data:match("^[ \t\r\n]*</" .. framing.envelope .. "[ \t\r\n]*>()", stop)
    stop = closing or stop
    if not framing.blank_line then return stop end
    local blank = data:match("^[ \t]*\r?\n[ \t]*\r?\n()", stop)
    if blank then return blank end
    if data:find("^[ \t\r\n]*<", stop) then return data:find("<", stop, true) end
    if data:find("^[ \t\r\n]*[^ \t\r\n]", stop) then return stop end
    return nil
  end
  while true do
    local mark = data:find("<", position, true)
    local between = data:sub(position, (mark or #data + 1) - 1)
    if depth == 0 and not begun and between:gsub("^\239\187\191", ""):find("[^ \t\r\n]") then
      -- Text before an element: it extends to the next one.
      if mark == nil then
        local line = data:match("\r?\n[ \t]*\r?\n()", position)
        return line
      end
      return mark
    end
    if mark == nil then return nil end
    local after, kind = K.markup(data, mark)
    if after == nil then return nil end
    local name = data:match("^</?(" .. NAME .. ")", mark)
    if kind == "start" or kind == "empty" then
      if framing.envelope and name == framing.envelope and depth == 0 then
        kind = "skipped"
      elseif depth > 0 and framing.roots and known_root(framing, name)
        and known_root(framing, name) ~= "inner" then
        return mark
      elseif depth > 0 and not framing.roots and name == root and data:sub(mark - 1, mark - 1) == "\n" then
        return mark
      end
    end
    if kind == "start" then
      root = root or name
      depth, begun = depth + 1, true
    elseif kind == "empty" and depth == 0 then return ended(after)
    elseif kind == "end" then
      if depth <= 1 then return ended(after) end
      depth = depth - 1
    end
    position = math.max(after, mark + 1)
  end
end

-- Return the range of a message within the envelope in a range, and the fields of that.
function K.unwrapped(protocol, text, at, stop)
  local envelope, fields = protocol.framing.envelope, {}
  if not envelope then return at, stop, fields end
  local inside, after = text:match("^[ \t\r\n]*<" .. envelope .. "(%f[ \t\r\n>][^<>]*)>()", at)
  if inside then at = after end
  for _, field in ipairs(inside and protocol.format.outer or {}) do
    local value = inside:match(field.name .. '[ \t\r\n]*=[ \t\r\n]*["\']([^"\']*)["\']')
    local node = value and K.read(field.type, value)
    if node then fields[#fields + 1] = {key = field.name, value = node} end
  end
  local closing = text:sub(at, stop - 1):match("()</" .. envelope .. "[ \t\r\n]*>[ \t\r\n]*$")
  return at, closing and at + closing - 1 or stop, fields
end

-- Values of elements and attributes.

local function element_value(element)
  if #element.children == 0 and #element.attributes == 0 then
    return K.scalar("s", element.text, element.inner or element.at, element.inner_stop or element.stop)
  end
  local found = {t = "object", at = element.at, stop = element.stop}
  for _, each in ipairs(element.attributes) do
    found[#found + 1] = {key = each.name, value = K.scalar("s", each.value, each.at, each.stop)}
  end
  local places = {}
  for _, child in ipairs(element.children) do
    local value = element_value(child)
    local place = places[child.tag]
    if place == nil then
      found[#found + 1] = {key = child.tag, value = value}
      places[child.tag] = #found
    elseif found[place].value.t == "list" then table.insert(found[place].value, value)
    else found[place].value = {t = "list", found[place].value, value} end
  end
  local text = element.text:match("^%s*(.-)%s*$")
  if text ~= "" then found[#found + 1] = {key = "text", value = K.scalar("s", text)} end
  return found
end

local function grouped(element, skipped)
  local values, count, order = {}, 0, {}
  for _, each in ipairs(element.attributes) do
    if each.name ~= skipped and not each.name:find("^xmlns") then
      values[each.name] = {text = each.value, at = each.at, stop = each.stop}
      count = count + 1
    end
  end
  for _, child in ipairs(element.children) do
    if values[child.tag] == nil then count = count + 1 end
    local known = values[child.tag]
    if known and known.elements then table.insert(known.elements, child)
    else values[child.tag] = {elements = {child}} end
  end
  return values, count, order
end

local read_value

local function read_text(kind, text, at, stop)
  local sent = (kind.kind == "text" or kind.kind == "rest") and text or text:match("^%s*(.-)%s*$")
  local node, problem = K.read(kind, sent)
  if node then node.at, node.stop = at, stop end
  return node, problem
end

local function read_each(kind, elements)
  local found = {t = "list"}
  for number, element in ipairs(elements) do
    local value, problem = read_value(kind, {elements = {element}})
    if value == nil then return nil, problem end
    found[number] = value
  end
  return found
end

local function is_list(kind, element)
  if #element.attributes > 0 then return false end
  if kind.item.kind ~= "object" then return true end
  for _, child in ipairs(element.children) do
    local known = false
    for _, field in ipairs(kind.item.fields) do known = known or field.name == child.tag end
    if not known then return true end
  end
  return false
end

function read_value(kind, value)
  if value.node then return value.node end
  if value.text then return read_text(kind, value.text, value.at, value.stop) end
  local elements = value.elements
  if #elements > 1 then
    if kind.kind == "list" then return read_each(kind.item, elements) end
    if kind.any then
      local found = {t = "list"}
      for number, element in ipairs(elements) do found[number] = element_value(element) end
      return {t = "any", v = K.json_source(found), at = elements[1].at, stop = elements[#elements].stop}
    end
    return nil, "there are several of these"
  end
  local element = elements[1]
  local leaf = #element.children == 0 and #element.attributes == 0
  if kind.any then
    local plain = element_value(element)
    if plain.t == "s" then return plain end
    return {t = "any", v = K.json_source(plain), at = element.at, stop = element.stop}
  end
  if leaf then
    return read_text(kind, element.text, element.inner or element.at, element.inner_stop or element.stop)
  end
  if kind.kind == "list" then
    return read_each(kind.item, is_list(kind, element) and element.children or {element})
  end
  if kind.kind == "object" then
    local values = grouped(element)
    local found = {t = "object", at = element.at, stop = element.stop}
    for _, field in ipairs(kind.fields) do
      local sent = values[field.name]
      if field.name == "text" and sent == nil then sent = {text = element.text} end
      if sent then
        local inner, problem = read_value(field.type, sent)
        if inner == nil then return nil, problem end
        found[#found + 1] = {key = field.name, value = inner}
      elseif not field.optional then return nil, "there is no " .. field.name end
    end
    return found
  end
  return nil, "this element has attributes or elements"
end

function K.formats.xml(protocol, frame, direction)
  local start, stop = K.body(protocol, frame)
  if start >= stop then return {note = "empty"} end
  local text, wrong = K.decoded(frame, protocol.format.encoding)
  if wrong then return {error = "the bytes are not " .. protocol.format.encoding} end
  if text ~= frame then start, stop = 1, #text + 1 end
  local outer
  start, stop, outer = K.unwrapped(protocol, text, start, stop)
  if protocol.framing.stays_open and not text:sub(start, stop - 1):find("[^ \t\r\n]") then
    return {name = protocol.framing.envelope, fields = {}}
  end
  local root, problem = K.parse_xml(text, start, stop)
  if root == nil then return {error = "this is not XML: " .. problem} end
  local attribute, sent = protocol.format.attribute, root.tag
  local marked = root
  if protocol.format.path then
    marked = nil
    for _, child in ipairs(root.children) do
      if child.tag == protocol.format.path[1] then marked = marked or child end
    end
  end
  if attribute and marked then
    sent = nil
    for _, each in ipairs(marked.attributes) do
      if each.name == attribute then sent = each.value end
    end
    if sent == nil then return {error = "there is no attribute " .. attribute} end
  end
  local name = K.name_of(protocol, direction, sent)
  if name == nil then return K.unknown(sent) end
  local values, count = grouped(root, not protocol.format.path and attribute)
  local own = root.text
  if #root.children > 0 then own = own:match("^%s*(.-)%s*$") end
  local has_text = own:find("%S") ~= nil
  for _, row in ipairs(K.rows(protocol, direction, name)) do
    for _, field in ipairs(row.fields) do has_text = has_text or field.name == "text" end
  end
  if has_text and values.text == nil then
    values.text, count = {text = own, at = root.inner, stop = root.inner_stop}, count + 1
  end
  for _, each in ipairs(outer) do
    values[each.key], count = {node = each.value}, count + 1
  end
  local function values_of() return values, count end
  return K.fit(K.rows(protocol, direction, name), name, values_of, function(field, value)
    return read_value(field.type, value)
  end)
end
