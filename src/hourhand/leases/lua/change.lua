-- change: give segments back, and take those that are still as the caller saw them.
-- ARGV from 6: how many are given, which, then pairs of a segment and who had it (0: nobody).
if redis.call('HGET', meta, 'incarnation') ~= incarnation then
    return {'forgotten'}
end
if not redis.call('ZSCORE', members, node) then
    return {'lost'}
end
stay()
local given = tonumber(ARGV[6])
for i = 7, 6 + given do
    if redis.call('HGET', holders, ARGV[i]) == node then
        redis.call('HDEL', holders, ARGV[i])
    end
end
for i = 7 + given, #ARGV, 2 do
    local segment, from = ARGV[i], ARGV[i + 1]
    local holder = redis.call('HGET', holders, segment)
    if (not holder and from == '0') or (holder == from and not redis.call('ZSCORE', members, from)) then
        redis.call('HSET', holders, segment, node)
    end
end
changed()
return view()
