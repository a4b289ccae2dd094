-- Elements whose attributes, text and elements are all specified, optionally in an envelope.

local read_shape

local function trimmed(text)
  return text:match("^[ \t\r\n]*(.-)[ \t\r\n]*$")
end

local function read_text(field, text, at, stop)
  local node, problem = K.read(field.type, field.type.kind == "text" and text or trimmed(text))
  if node == nil then return nil, field.name .. ": " .. problem end
  node.at, node.stop = at, stop
  return node
end

function read_shape(shape, element, outer)
  local found, known = {t = "object", at = element.at, stop = element.stop}, {}
  for _, field in ipairs(outer or {}) do known[field.name] = field end
  for _, field in ipairs(shape.attributes) do known[field.name] = field end
  local seen = {}
  for _, each in ipairs(element.attributes) do
    local field = known[each.name]
    if not field then return nil, each.name .. " does not belong here" end
    local node, problem = read_text(field, each.value, each.at, each.stop)
    if node == nil then return nil, problem end
    seen[each.name] = true
    found[#found + 1] = {key = each.name, value = node}
  end
  for _, field in ipairs(shape.attributes) do
    if not field.optional and not seen[field.name] then return nil, "there is no " .. field.name end
  end
  local own = trimmed(element.text)
  if shape.text then
    if #element.children > 0 then return nil, "an element does not belong here" end
    if own ~= "" or not shape.text.optional then
      local node, problem = read_text(shape.text, element.text, element.inner, element.inner_stop)
      if node == nil then return nil, problem end
      found[#found + 1] = {key = shape.text.name, value = node}
    end
    return found
  end
  if own ~= "" then return nil, "there is text between elements" end
  if #element.children > shape.limit then return nil, "there are too many elements" end
  local children, counts, lists, texts = {}, {}, {}, {}
  for _, child in ipairs(shape.children) do children[child.name] = child end
  for _, inner in ipairs(element.children) do
    local child = children[inner.tag]
    if child == nil then return nil, inner.tag .. " does not belong here" end
    local node, problem
    if child.shape then node, problem = read_shape(child.shape, inner)
    else
      if #inner.attributes + #inner.children > 0 then return nil, inner.tag .. " has more than a text" end
      node, problem = read_text(child, inner.text, inner.inner or inner.at, inner.inner_stop or inner.stop)
    end
    if node == nil then return nil, problem end
    counts[inner.tag] = (counts[inner.tag] or 0) + 1
    if child.most == nil then
      if counts[inner.tag] > 1 then return nil, inner.tag .. " occurs twice" end
      found[#found + 1] = {key = inner.tag, value = node}
    else
      if child.once and node.t == "s" then
        local key = inner.tag .. "\0" .. node.v
        if texts[key] then return nil, node.v .. " occurs twice" end
        texts[key] = true
      end
      if lists[inner.tag] == nil then
        lists[inner.tag] = {t = "list"}
        found[#found + 1] = {key = inner.tag, value = lists[inner.tag]}
      end
      table.insert(lists[inner.tag], node)
    end
  end
  for _, child in ipairs(shape.children) do
    local count = counts[child.name] or 0
    if count < child.least or (child.most and count > child.most) then
      return nil, child.name .. " occurs " .. count .. " times"
    end
  end
  return found
end

function K.formats.elements(protocol, frame, direction)
  local text, charset = frame, protocol.format.charset
  if charset and K.not_utf8(text) then
    if text:find("[\128-\159]") then return {error = "this is in none of the two charsets"} end
    text = text:gsub("[\128-\255]", function(byte) return charset[byte:byte() - 127] end)
  else
    local problem
    text, problem = K.decoded(text, protocol.format.encoding)
    if problem then return {error = "the bytes are not " .. protocol.format.encoding} end
  end
  if text:find("[%z\1-\8\11\12\14-\31]") then return {error = "there is a control character"} end
  text = text:gsub("^[ \t\r\n]*\239\187\191", "")
  if not text:find("[^ \t\r\n]") then return {nothing = true} end
  local body = trimmed(text):gsub("^<%?xml[^<>]*%?>[ \t\r\n]*", "")
  local from, upto, outer = K.unwrapped(protocol, body, 1, #body + 1)
  body = trimmed(body:sub(from, upto - 1))
  if body == "" and protocol.framing.stays_open then return {name = protocol.framing.envelope, fields = {}} end
  local root, problem = K.parse_xml(body, 1, #body + 1)
  if root == nil then return {error = "this is not XML: " .. problem} end
  local rows = K.rows(protocol, direction, root.tag)
  if rows == nil and root.tag ~= root.tag:lower() then
    local function lower(element)
      element.tag = element.tag:lower()
      for _, each in ipairs(element.attributes) do each.name = each.name:lower() end
      for _, child in ipairs(element.children) do lower(child) end
    end
    lower(root)
    rows = K.rows(protocol, direction, root.tag)
  end
  if rows == nil then return K.unknown(root.tag) end
  local found, wrong
  for _, row in ipairs(rows) do
    local is_meant = row.mark == nil
    for _, each in ipairs(root.attributes) do
      is_meant = is_meant or (each.name == row.mark[1] and each.value == row.mark[2])
    end
    if is_meant and found == nil then
      local problem
      found, problem = read_shape(row.shape, root, protocol.format.outer)
      wrong = wrong or problem
    end
  end
  if found == nil then
    return {name = root.tag, fields = {}, error = root.tag .. ": " .. (wrong or "its kind is not known")}
  end
  local function drop(node)
    node.at, node.stop = nil, nil
    for _, each in ipairs(node) do drop(each.value or each) end
  end
  -- Offsets are those of the message without its envelope.
  drop(found)
  for _, each in ipairs(outer) do found[#found + 1] = each end
  return {name = root.tag, fields = found}
end
