-- Optional fields before the name of a message, with characters around them, and a blank or delimiter.

local function pattern_of(part)
  if part.type.kind:find("number") then return part.type.whole and "^%-?%d+" or "^%-?%d+%.?%d*" end
  return "^[^ \t\r\n" .. part.marks:gsub("%p", "%%%0") .. "]+"
end

-- Return the fields before the name, and where the message begins.
function K.before(framing, frame)
  local found, at = {fields = {}, start = 1}, 1
  for _, part in ipairs(framing.before) do
    local start = at + #part.opening
    local _, stop = frame:find(pattern_of(part), start)
    if frame:sub(at, start - 1) == part.opening and stop
      and frame:sub(stop + 1, stop + #part.closing) == part.closing then
      local node, problem = K.read(part.type, frame:sub(start, stop))
      if node == nil then found.error = part.name .. ": " .. problem
      else
        node.at, node.stop = start, stop + 1
        found.fields[#found.fields + 1] = {key = part.name, value = node}
      end
      at = stop + #part.closing + 1
    end
  end
  if at == 1 then return found end
  local after
  if framing.gap == nil then after = frame:match("^[ \t]+()", at)
  elseif frame:sub(at, at + #framing.gap - 1) == framing.gap then after = at + #framing.gap end
  if after == nil and (at > #frame or frame:find("^[\r\n]", at)) then after = at end
  return after and {fields = found.fields, start = after, error = found.error} or {fields = {}, start = 1}
end
