"""The Lua scripts for seeds: URLs that come from outside, in a stream with one consumer group for all agents.

They are sent as text, as those of `scripts`, and use what Redis 6.2 has (XAUTOCLAIM; XREADGROUP in a script).
"""

from __future__ import annotations

_OUTSIDE = """
-- KEYS: seeds, control. What waits, and the mark of the contract: the last id, the server, its memory.
local function outside()
  local waiting, last = redis.call('XLEN', KEYS[1]), ''
  if waiting > 0 then return waiting, '' end
  if redis.call('EXISTS', KEYS[1]) == 1 then
    local about = redis.call('XINFO', 'STREAM', KEYS[1])
    for i = 1, #about, 2 do
      if about[i] == 'last-generated-id' then last = about[i + 1] end
    end
  end
  local may, server = not redis.acl_check_cmd or redis.acl_check_cmd('INFO', 'server'), nil
  if may then server = redis.pcall('INFO', 'server') end
  local name = type(server) == 'string' and string.match(server, 'run_id:(%w+)') or ''
  local memory = redis.call('HGET', KEYS[2], 'memory')
  return 0, memory and memory .. ' ' .. name .. ' ' .. last or ''
end
"""
_OVER = """
-- Whether the control hash says that the present run is over: signatures stand behind.
local function over()
  local said = redis.call('HMGET', KEYS[2], 'run', 'finished')
  local run = said[1] and string.match(said[1], '^%S+')
  return run and said[2] and run == string.match(said[2], '^%S+')
end
"""

LOOK = f"""{_OUTSIDE}
local waiting, mark = outside()
return {{waiting, mark}}
"""

END = f"""{_OUTSIDE}{_OVER}
-- ARGV: the mark, then fields and values for control. Returns whether the crawl is over.
if over() then return 1 end
local waiting, mark = outside()
if waiting > 0 or mark == '' or mark ~= ARGV[1] then return 0 end
for i = 2, #ARGV, 2 do redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1]) end
return 1
"""

APPEND = f"""{_OVER}
-- KEYS: seeds, control. ARGV: of each seed, how many names and values it has, then these. Returns their ids; none where
-- the crawl is over.
local ids, i = {{}}, 1
if over() then return ids end
while i <= #ARGV do
  local number = tonumber(ARGV[i])
  ids[#ids + 1] = redis.call('XADD', KEYS[1], '*', unpack(ARGV, i + 1, i + number))
  i = i + number + 1
end
return ids
"""

READ = """
-- KEYS[1] seeds. ARGV: group, agent, most seeds, largest, most bytes together, bytes of a head, ms after which a seed
-- of another agent is claimed, ms after which a consumer without any is forgotten ('' both: not now), ids in hand...
-- Returns {id, size, whole?, {field, value, ...}} for each seed of this agent not in hand: those that are its own
-- already (handed to it, claimed, or read in an exchange that failed), then new ones. Those in hand are looked at, so
-- that no other agent claims them.
local few = 8
local key, group, me = KEYS[1], ARGV[1], ARGV[2]
local most, largest, budget, head_length = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local in_hand = {}
local held = #ARGV - 8
for i = 9, #ARGV do in_hand[ARGV[i]] = true end

local function failed(answer) return type(answer) == 'table' and answer.err end
local function lacks_group(answer) return failed(answer) and string.find(answer.err, 'NOGROUP', 1, true) end

if ARGV[7] ~= '' then
  local claimed = redis.pcall('XAUTOCLAIM', key, group, me, ARGV[7], '0-0', 'COUNT', math.max(1, most), 'JUSTID')
  if failed(claimed) and not lacks_group(claimed) then return claimed end
  local consumers = redis.pcall('XINFO', 'CONSUMERS', key, group)
  for i = 1, failed(consumers) and 0 or #consumers do
    local about = {}
    for j = 1, #consumers[i], 2 do about[consumers[i][j]] = consumers[i][j + 1] end
    if about.name ~= me and about.pending == 0 and about.idle > tonumber(ARGV[8]) then
      redis.call('XGROUP', 'DELCONSUMER', key, group, about.name)
    end
  end
end

local seeds = {}
local function take(id, fields)
  local size, head = 0, ''
  for i = 1, #fields do size = size + #fields[i] end
  if size > largest then
    for i = 1, #fields, 2 do
      if #head < head_length then
        head = head .. string.sub(fields[i], 1, head_length) .. '=' .. string.sub(fields[i + 1], 1, head_length) .. ' '
      end
    end
    fields = {'oversized', string.format('%.0f', size), 'head', string.sub(head, 1, head_length)}
  end
  seeds[#seeds + 1] = {id, size, size > largest and 0 or 1, fields}
  budget = budget - size
end

local function read(cursor)
  local count = cursor == '>' and math.min(few, most - #seeds) or few
  return redis.pcall('XREADGROUP', 'GROUP', group, me, 'COUNT', count, 'STREAMS', key, cursor)
end

local cursor = '0-0'
while (cursor ~= '>' and held > 0) or (#seeds < most and budget > 0) do
  local answer = read(cursor)
  if lacks_group(answer) then
    if redis.call('EXISTS', key) == 0 then return {} end
    redis.call('XGROUP', 'CREATE', key, group, '0')
    answer = read(cursor)
  end
  if failed(answer) then return answer end
  local entries = answer and answer[1] and answer[1][2] or {}
  for i = 1, #entries do
    local id, fields = entries[i][1], entries[i][2]
    if cursor ~= '>' then cursor = id end
    if not fields or #fields == 0 then
      redis.call('XACK', key, group, id) -- somebody has deleted it
    elseif in_hand[id] then
      held = held - 1
    elseif #seeds < most and (budget > 0 or cursor == '>') then
      take(id, fields)
    end
  end
  if #entries == 0 then
    if cursor == '>' then break end
    cursor = '>'
  end
end
return seeds
"""

ANSWER = """
-- KEYS[1] seeds, KEYS[2] answers. ARGV: group, most answers, seconds they are kept, agent, how many are answered; id,
-- word, reason, name and URL of each; then id and agent of each that is handed on.
-- Each step may be repeated: a seed that was acknowledged is not answered again. A Redis that is full loses the answer.
local key, group, number = KEYS[1], ARGV[1], tonumber(ARGV[5])
local there = redis.call('TYPE', KEYS[2]).ok
if number > 0 and there ~= 'none' and there ~= 'stream' then
  return redis.error_reply('WRONGTYPE of the answers') -- before anything is done: it is set aside, and this comes again
end
for i = 6, 5 + 5 * number, 5 do
  if redis.call('XACK', key, group, ARGV[i]) == 1 then
    redis.pcall('XADD', KEYS[2], 'MAXLEN', '~', ARGV[2], '*', 'seed', ARGV[i], 'said', ARGV[i + 1], 'why', ARGV[i + 2],
      'id', ARGV[i + 3], 'url', ARGV[i + 4], 'by', ARGV[4])
  end
  redis.call('XDEL', key, ARGV[i])
end
if number > 0 then redis.pcall('EXPIRE', KEYS[2], ARGV[3]) end
for i = 6 + 5 * number, #ARGV, 2 do
  redis.pcall('XCLAIM', key, group, ARGV[i + 1], 0, ARGV[i], 'JUSTID')
end
return 1
"""

MOVE = """
-- KEYS: a list, set or sorted set; seeds. ARGV: the field of what becomes a seed, most at once, seeds that may wait.
-- One step, so that nothing is lost between the two. Returns how many were moved, -1 where the key holds another thing.
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'none' then return 0 end
local there = redis.call('TYPE', KEYS[2]).ok
if there ~= 'none' and there ~= 'stream' then return 0 end -- the read of the seeds sets that aside
local room = tonumber(ARGV[3]) - (there == 'none' and 0 or redis.call('XLEN', KEYS[2]))
local moved = 0
while moved < math.min(tonumber(ARGV[2]), room) do
  local text
  if kind == 'list' then text = redis.call('LPOP', KEYS[1])
  elseif kind == 'set' then text = redis.call('SPOP', KEYS[1])
  elseif kind == 'zset' then text = redis.call('ZPOPMAX', KEYS[1])[1]
  else return -1 end
  if not text then break end
  redis.call('XADD', KEYS[2], '*', ARGV[1], text)
  moved = moved + 1
end
return moved
"""
