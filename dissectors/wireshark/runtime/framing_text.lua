-- Ends of frames that are lines, datagrams, blocks, or end with a delimiter. nil: more bytes are needed.

function K.framings.lines(framing, data, at)
  if framing.cr then
    -- A CR alone ends a line, too.
    local found = data:find("[\r\n]", at)
    if found == at and data:sub(at, at) == "\n" and #data > at and not framing.strict then
      found = data:find("[\r\n]", at + 1) or nil
    end
    if found == nil then return nil end
    if data:sub(found, found) == "\n" then return found + 1 end
    if found == #data then return found + 1 end
    return data:sub(found + 1, found + 1) == "\n" and found + 2 or found + 1
  end
  local found = data:find("\n", at, true)
  return found and found + 1
end

function K.framings.datagrams(framing, data, at)
  return #data + 1
end

function K.framings.size(framing, data, at)
  return at + framing.size <= #data + 1 and at + framing.size or nil
end

K.framings.send = K.framings.datagrams

function K.framings.delimiter(framing, data, at)
  local _, stop = data:find(framing["end"], at, true)
  return stop and stop + 1
end

function K.framings.block(framing, data, at)
  local line = at
  while true do
    local stop = data:find("\n", line, true)
    if stop == nil then return nil end
    if data:sub(line, stop - 1):gsub("\r$", "") == framing["end"] then return stop + 1 end
    line = stop + 1
  end
end

-- Return the range of the message in its frame.
function K.body(protocol, frame)
  local framing, start, stop = protocol.framing, 1, #frame + 1
  if framing.kind == "delimiter" and frame:sub(-#framing["end"]) == framing["end"] then
    stop = stop - #framing["end"]
  elseif framing.kind == "size" and protocol.format.kind ~= "struct" then
    stop = frame:find("\0", 1, true) or stop
  elseif framing.kind == "block" and frame:sub(-1) == "\n" then
    local text = frame:sub(1, -2):gsub("\r$", "")
    local last = text:match(".*\n()") or 1
    if text:sub(last) == framing["end"] then stop = last end
  end
  local kind = protocol.format.kind
  if framing.cr and #frame > 1 and frame:sub(1, 1) == "\n" then start = 2 end
  if kind == "struct" or protocol.format.unstripped then return start, stop end
  if framing.kind == "line_fields" then return 1, #frame:gsub("\n$", ""):gsub("\r$", "") + 1 end
  if kind == "json" or kind == "xml" then
    local ended, first = K.stripped(frame, start, stop, " \t\r\n")
    return first, ended
  end
  stop = K.stripped(frame, start, stop, "\r\n")
  local closing = framing.closing
  return start, closing and frame:sub(stop - #closing, stop - 1) == closing and stop - #closing or stop
end
