-- What every script begins with: the keys of one board, the server's time, and the members whose time is over, gone.
-- members: node -> when it is gone (ms) · holders: segment -> node · meta: incarnation, version
-- Node ids are compared as text: they do not fit into Lua's numbers.
local members, holders, meta = KEYS[1], KEYS[2], KEYS[3]
local node, lease_ms, keep_ms, incarnation, seen = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function changed()
    redis.call('HINCRBY', meta, 'version', 1)
end

local function stay()
    redis.call('ZADD', members, string.format('%.0f', now + lease_ms), node)
    for _, key in ipairs({members, holders, meta}) do
        redis.call('PEXPIRE', key, keep_ms)
    end
end

-- The whole board, or only its version where the caller has seen it.
local function view()
    local version = redis.call('HGET', meta, 'version')
    if version == seen then
        return {'same', version}
    end
    return {'view', version, redis.call('ZRANGE', members, 0, -1), redis.call('HGETALL', holders)}
end

if redis.call('ZREMRANGEBYSCORE', members, '-inf', string.format('%.0f', now)) > 0 then
    changed()
end
