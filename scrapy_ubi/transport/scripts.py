"""The Lua scripts that run inside Redis: where one step, or a look at sizes before sending, is needed.

They are sent as text with EVAL each time, about a kilobyte, not by digest: so a restarted server, SCRIPT FLUSH or a
replaced Redis needs no second round trip and no code for it. They use what Redis 5 has (no exclusive ranges) and no
global but `redis`.
"""

from __future__ import annotations

READ_INBOX = """
-- KEYS[1] inbox. ARGV: most letters, largest letter, most bytes together, bytes of a head, of a name, ids in hand...
-- Returns {id, size, whole?, {field, value, ...}} for each letter not in hand, from the oldest.
-- Entries are looked at a few at a time: each look counts as a command and costs like one, and Lua never holds more of
-- a flood of huge entries than that few and what fits the budget.
local few = 8
local most, largest, budget = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local head_length, name_length = tonumber(ARGV[4]), tonumber(ARGV[5])
local in_hand = {}
for i = 6, #ARGV do in_hand[ARGV[i]] = true end

-- s + 1 on decimal strings: ids have 64 bits, numbers here only 53
local function plus_one(s)
  local left, digit, nines = string.match(s, '^(%d*)([0-8])(9*)$')
  if not left then return '1' .. string.rep('0', #s) end
  return left .. (tonumber(digit) + 1) .. string.rep('0', #nines)
end
local last = '18446744073709551615'
local function after(id)
  local ms, seq = string.match(id, '^(%d+)%-(%d+)$')
  if seq ~= last then return ms .. '-' .. plus_one(seq) end
  if ms ~= last then return plus_one(ms) .. '-0' end
  return nil
end

local function cut(fields, size)
  local head, sender = '', nil
  for i = 1, #fields, 2 do
    if #head < head_length then
      head = head .. string.sub(fields[i], 1, head_length) .. '=' .. string.sub(fields[i + 1], 1, head_length) .. ' '
    end
    if fields[i] == 'from' then sender = string.sub(fields[i + 1], 1, name_length) end
  end
  local marker = {'oversized', string.format('%.0f', size), 'head', string.sub(head, 1, head_length)}
  if sender then
    marker[5] = 'from'
    marker[6] = sender
  end
  return marker
end

local letters = {}

-- Whether more may be taken after this entry.
local function take(id, fields)
  if in_hand[id] then return true end
  local size = 0
  for i = 1, #fields do size = size + #fields[i] end
  if size > largest then
    letters[#letters + 1] = {id, size, 0, cut(fields, size)}
  elseif #letters == 0 or size <= budget then
    letters[#letters + 1] = {id, size, 1, fields}
  else
    return false
  end
  budget = budget - size -- a huge one was looked at whole, too: many in one run would hold up the server
  return #letters < most and budget > 0
end

local cursor, more = '-', most > 0 and budget > 0
while cursor and more do
  local entries = redis.call('XRANGE', KEYS[1], cursor, '+', 'COUNT', few)
  for i = 1, #entries do
    more = take(entries[i][1], entries[i][2])
    if not more then break end
  end
  cursor = #entries == few and after(entries[few][1]) or nil
end
return letters
"""

CLAIM = """
-- KEYS: beats, pulses. ARGV: agent, '1' if a line is expected, the expected line, the new line, where its pulse is
-- ('' for nowhere), the expected pulse.
local present = redis.call('HGET', KEYS[1], ARGV[1])
if present == ARGV[4] then return 1 end
if ARGV[2] == '1' then
  if present ~= ARGV[3] then return 0 end
elseif present then
  return 0
end
if ARGV[5] ~= '' and redis.call('GETRANGE', KEYS[2], ARGV[5], ARGV[5] + #ARGV[6] - 1) ~= ARGV[6] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[4])
return 1
"""

FORGET = """
-- KEYS: beats, slots, pulses, then inbox and acks of each agent where these are here. ARGV: bytes of a pulse, then
-- agent, line, slot ('' for none) and pulse of each. Returns the agents that were forgotten.
local width, gone = tonumber(ARGV[1]), {}
for i = 2, #ARGV, 4 do
  local agent, slot, at = ARGV[i], ARGV[i + 2], tonumber(ARGV[i + 2])
  local same = redis.call('HGET', KEYS[1], agent) == ARGV[i + 1]
  if at and redis.call('GETRANGE', KEYS[3], at * width, at * width + width - 1) ~= ARGV[i + 3] then same = false end
  if same then
    redis.call('HDEL', KEYS[1], agent)
    if at and redis.call('HGET', KEYS[2], slot) == agent then
      redis.call('HDEL', KEYS[2], slot)
      if #ARGV[i + 3] > 0 then redis.call('SETRANGE', KEYS[3], at * width, string.rep('\\0', width)) end
    end
    local mail = 4 + (i - 2) / 2
    if KEYS[mail] then redis.call('DEL', KEYS[mail], KEYS[mail + 1]) end
    gone[#gone + 1] = agent
  end
end
return gone
"""

PUBLISH = """
-- KEYS[1] agents. ARGV: agent, its profile, the field of the sum, '1' if it counts from 0. Returns 0 where what
-- it counts may be in the sum already: then nothing is written.
local function is_there(field) return redis.call('HGET', KEYS[1], field) end
if ARGV[4] ~= '1' and not is_there(ARGV[1]) and is_there(ARGV[3]) then return 0 end
-- A server that has reached its memory limit refuses a plain HSET, but lets a script that has begun to write go on. The
-- text takes the place of one about as long, so the limit means what it meant; and an agent that could not beat only
-- because Redis is full of something else would stop for no reason.
if type(redis.pcall('HSET', KEYS[1], ARGV[1], ARGV[2])) == 'table' then
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
end
return 1
"""

SUM_UP = """
-- KEYS: agents, beats. ARGV: the field of the sum, the digest of the present sum ('' where there is none), the new one,
-- then name and digest of each profile that is in it. Deletions come first: a server that is full lets a script that
-- has begun to write go on.
local function is(field, digest)
  local text = redis.call('HGET', KEYS[1], field)
  return (text and redis.sha1hex(text) or '') == digest
end
if not is(ARGV[1], ARGV[2]) then return 0 end
for i = 4, #ARGV, 2 do
  if not is(ARGV[i], ARGV[i + 1]) or redis.call('HGET', KEYS[2], ARGV[i]) then return 0 end
end
for i = 4, #ARGV, 2 do redis.call('HDEL', KEYS[1], ARGV[i]) end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
"""

CHANGE = """
-- KEYS[1] start, or control. ARGV: how many fields there may be, then field, '1' if a text is expected, the expected
-- and the new text of each. Returns what each field holds then, '' for one more than there may be.
local said = {}
for i = 2, #ARGV, 4 do
  local present = redis.call('HGET', KEYS[1], ARGV[i])
  local as_expected = (ARGV[i + 1] == '1' and present == ARGV[i + 2]) or (ARGV[i + 1] == '0' and not present)
  if as_expected and (present or redis.call('HLEN', KEYS[1]) < tonumber(ARGV[1])) then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 3])
    present = ARGV[i + 3]
  end
  said[#said + 1] = present or ''
end
return said
"""

REPLY = """
-- KEYS[1] answers. ARGV: agent, text, seconds. One step, so no answer is left without an end. One that Redis does not
-- take (it is full, or does not allow it) is lost, and the user who asked gets none: the crawl must not wait for that.
local set = redis.pcall('HSET', KEYS[1], ARGV[1], ARGV[2])
if type(set) == 'table' then return 0 end
local ends = redis.pcall('EXPIRE', KEYS[1], ARGV[3])
if type(ends) == 'table' then redis.pcall('HDEL', KEYS[1], ARGV[1]) end
return 1
"""

BEAT = """
-- KEYS: beats, slots, pulses. ARGV: agent, line, the field of the token, a new token, the pulse, how many slots there
-- are, the slot it had ('' for none). As PUBLISH; a token that is there stays. Returns the token, and the agent's slot:
-- the one that it has, else the first that is free. Nothing where none is.
local function is_mine(slot) return redis.call('HGET', KEYS[2], slot) == ARGV[1] end
local slot = ARGV[7] ~= '' and is_mine(ARGV[7]) and tonumber(ARGV[7]) or nil
if not slot then
  local free, owners = nil, redis.call('HLEN', KEYS[2])
  for i = 0, ARGV[6] - 1 do
    local owner = redis.call('HGET', KEYS[2], i)
    if owner then owners = owners - 1 else free = free or i end
    if owner == ARGV[1] then slot = i end
    if slot or (free and owners <= 0) then break end
  end
  slot = slot or free
  if not slot then return {} end
end
if type(redis.pcall('HSET', KEYS[1], ARGV[1], ARGV[2])) == 'table' then
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
end
redis.call('HSETNX', KEYS[1], ARGV[3], ARGV[4])
redis.call('HSET', KEYS[2], slot, ARGV[1])
redis.call('SETRANGE', KEYS[3], slot * #ARGV[5], ARGV[5])
return {redis.call('HGET', KEYS[1], ARGV[3]), slot}
"""

WATCHED = """
-- KEYS[1] watched. ARGV[1]: the time (ms) by the clock of who asks. Returns for how long (ms) this data set is known to
-- have lost nothing, and why that is 0 (watched.py). A key of any other content, or type, is written over.
local function told(section, pattern)
  local text = redis.pcall('INFO', section)
  return type(text) == 'string' and string.match(text, pattern) or nil
end
local run, replid = told('server', 'run_id:(%w+)'), told('replication', 'master_replid:(%w+)')
local policy, time = told('memory', 'maxmemory_policy:([%w-]+)'), redis.pcall('TIME')
if not (run and replid and policy and time[1]) then return {0, 'untold'} end
if string.sub(policy, 1, 8) == 'allkeys-' then return {0, 'evicts'} end
local server, own, said = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(ARGV[1]), redis.pcall('GET', KEYS[1])
local ids = run .. ' ' .. replid
local then_server, then_own = string.match(type(said) == 'string' and said or '', '^' .. ids .. ' (%d+) (%d+)$')
if then_server then
  local passed = math.min(server - then_server, own - then_own)
  if passed >= 0 then return {passed, ''} end
end
local set = redis.pcall('SET', KEYS[1], string.format('%s %.0f %.0f', ids, server, own))
return {0, set.err and 'denied' or 'new'}
"""

WHOLE = """
-- KEYS: beats, slots, pulses. ARGV[1]: the last byte of the pulses. All of them at one instant.
local pulses = redis.call('GETRANGE', KEYS[3], 0, ARGV[1])
return {pulses, redis.call('HGETALL', KEYS[1]), redis.call('HGETALL', KEYS[2])}
"""

SET_ASIDE = """
-- KEYS[1] a key, KEYS[2] its name aside. ARGV[1] the type it should have, '' if it is spoilt whatever its type.
-- The look and the renaming are one step: a key that another agent has just put right stays.
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'none' or kind == ARGV[1] then return 0 end
redis.call('RENAME', KEYS[1], KEYS[2])
return 1
"""

CLEAR = """
-- KEYS: control, beats, agents, then other shared keys. ARGV: '1' if a text is expected, the expected `finished`,
-- what the key of an agent begins with, how many names its keys have, those names..., fields and values that control
-- says afterwards...
local kind = redis.call('TYPE', KEYS[1]).ok
if ARGV[1] == '1' and (kind ~= 'hash' or redis.call('HGET', KEYS[1], 'finished') ~= ARGV[2]) then return 0 end
for i = 2, 3 do
  if redis.call('TYPE', KEYS[i]).ok == 'hash' then
    for _, agent in ipairs(redis.call('HKEYS', KEYS[i])) do
      for k = 5, 4 + ARGV[4] do redis.call('DEL', ARGV[3] .. agent .. ':' .. ARGV[k]) end
    end
  end
end
for i = 1, #KEYS do redis.call('DEL', KEYS[i]) end
for i = 5 + ARGV[4], #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
return 1
"""
